"""In this folder pytest runs only the examples of the pages; the scripts are run when the pages are built."""

collect_ignore_glob = ["*.py"]
