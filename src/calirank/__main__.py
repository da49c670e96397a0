"""``python -m calirank`` is the command ``calirank``."""

from calirank.cli import main

main()
