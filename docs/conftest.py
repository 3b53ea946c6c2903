"""Of these folders pytest takes the examples of the pages alone; the scripts are run when the pages are built."""

collect_ignore_glob = ["*.py"]
