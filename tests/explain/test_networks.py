"""Networks for texts of different lengths, which lie packed one behind the other, against one text at a time."""

import pytest
import torch

from khot.explain.networks import SentencePredictor, SentenceSelector, TokenSelector

TEXTS = [[3, 1, 4, 1, 5], [9], [2, 6, 5, 3, 5, 8, 9], [7, 9, 3]]


def padded(texts: list[list[int]], length: int, front: bool = False) -> torch.Tensor:
    rows = [[0] * (length - len(text)) + text if front else text + [0] * (length - len(text)) for text in texts]
    return torch.tensor(rows)


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


@pytest.mark.parametrize("front", [False, True])
@pytest.mark.parametrize("length", [7, 12])
def test_neither_padding_nor_other_texts_change_the_logits_of_a_token(length: int, front: bool):
    selector = TokenSelector(10).eval()
    codes = padded(TEXTS, length, front)
    logits = selector(codes)
    assert logits.shape == codes.shape
    assert (logits[codes == 0] == 0).all()
    for row, text in enumerate(TEXTS):
        alone = selector(torch.tensor([text]))[0]
        torch.testing.assert_close(logits[row][codes[row] != 0], alone, atol=1e-6, rtol=1e-5)


def by_convolutions(selector: TokenSelector, codes: torch.Tensor) -> torch.Tensor:
    """The logits as L2X has them, of texts without padding."""
    head = selector.head
    first = head.first(selector.embedding(codes).transpose(1, 2)).relu()
    whole = head.whole(first.amax(-1)).relu()
    local = head.third(head.second(first).relu()).relu()
    both = torch.cat([local, whole.unsqueeze(-1).expand(-1, -1, codes.shape[1])], 1).transpose(1, 2)
    return head.last(head.both(both).relu()).squeeze(2)


def test_logits_of_tokens_and_gradients_by_convolutions():
    selector, codes = TokenSelector(10).double().eval(), torch.tensor([TEXTS[2], TEXTS[2][::-1]])
    found = []
    for logits in (selector(codes), by_convolutions(selector, codes)):
        grads = torch.autograd.grad(logits.square().sum(), list(selector.parameters()))
        found.append([logits.detach(), *grads])
    torch.testing.assert_close(found[0], found[1])


def test_padding_does_not_change_sentences():
    selector, predictor = SentenceSelector(10).eval(), SentencePredictor(10, 2).eval()
    short, long = padded(TEXTS, 7).reshape(2, 2, 7), padded(TEXTS, 20).reshape(2, 2, 20)
    torch.testing.assert_close(selector(short), selector(long))
    torch.testing.assert_close(predictor(short, torch.ones(2, 2)), predictor(long, torch.ones(2, 2)))


def test_without_any_word():
    nothing = torch.zeros(2, 3, 4, dtype=torch.long)
    assert (TokenSelector(10)(nothing[0]) == 0).all()
    assert SentenceSelector(10)(nothing).isfinite().all()
    assert SentencePredictor(10, 2)(nothing, torch.zeros(2, 3)).isfinite().all()


def test_gradients_of_packed_texts_are_those_of_one_at_a_time():
    selector = TokenSelector(10).double().eval()
    codes, found = padded(TEXTS, 9), []
    for logits in (selector(codes), torch.cat([selector(torch.tensor([text]))[0] for text in TEXTS])):
        selector.zero_grad()
        logits.square().sum().backward()
        found.append([parameter.grad.clone() for parameter in selector.parameters()])
    torch.testing.assert_close(found[0], found[1])
