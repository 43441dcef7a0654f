"""`python -m mlconsensus` is the command `mlconsensus`."""

from .cli import main

if __name__ == "__main__":
    main()
