"""Figures and self-contained HTML pages. matplotlib and jinja2 load only when one is drawn or written."""
