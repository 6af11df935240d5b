"""The command ``hardmax``, also as ``python -m hardmax``."""

from .cli.app import app


def main() -> None:
    """Run the command line."""
    app(prog_name="hardmax")


if __name__ == "__main__":
    main()
