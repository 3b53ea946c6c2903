"""
Explain the rows of a scikit-learn model
========================================

Which two of thirty columns are most informative about what a logistic regression predicts for a row?
:class:`~khot.explain.SubsetExplainer` only calls ``predict_proba``.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from khot.explain import Columns, SubsetExplainer, fidelity

data = load_breast_cancer()
model = make_pipeline(StandardScaler(), LogisticRegression()).fit(data.data, data.target)

columns = Columns(names=list(data.feature_names))
explainer = SubsetExplainer(k=2, masker=columns, temperature=0.5, class_names=list(data.target_names))
explainer.fit(model.predict_proba, data.data)

explanation = explainer.explain(data.data)
print(explanation.items[0])

# %%
# How far to trust it: how often the model predicts the same class from the two columns alone, and from two columns
# that are chosen at random.

print("chosen columns:", fidelity.post_hoc_accuracy(explanation))
print("random columns:", fidelity.random_accuracy(explanation, model.predict_proba))

# %%
# How often each column is chosen:

share = explanation.chosen.mean(0)
order = share.argsort()[-8:]
fig, ax = plt.subplots(layout="constrained")
ax.barh(data.feature_names[order], share[order], color="#f58518")
ax.set_xlabel("share of the rows that the column explains")
plt.show()
