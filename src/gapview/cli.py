"""The command line: parsing and printing only."""


def main() -> None:
    """Run gapview."""
