"""`python -m tandem` and the script `tandem`: the command that the package has with it."""
import os
import sys


def main():
    home = os.path.dirname(os.path.abspath(__file__))
    command = os.path.join(home, "_native", "bin", "tandem")
    if not os.access(command, os.X_OK):
        sys.exit(f"tandem: the package has no command at {command}: install it again")
    os.execv(command, ["tandem", *sys.argv[1:]])


if __name__ == "__main__":
    main()
