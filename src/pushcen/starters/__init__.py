"""Starting points for a task of one's own, as `pushcen new` writes them: a task, its test, a config, a README.

Each is a folder here, of files as they are written; those that tools would take for sources end in `.txt`.
"""

from importlib import resources
from pathlib import Path

from pushcen.checks import check_choice
from pushcen.errors import OptionError
from pushcen.files import write_whole

KINDS = ("images", "table", "text", "own")


def write_starter(folder: Path, kind: str) -> list[str]:
    """Write a starting point into a new or empty folder; return the names of its files.

    >>> import tempfile
    >>> write_starter(Path(tempfile.mkdtemp()) / "wards", "own")
    ['README.md', 'config.toml', 'task.py', 'test_task.py']
    """
    check_choice("kind", kind, KINDS)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise OptionError(f"{folder}: is there already, and not empty; a starting point goes into a new folder")
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for file in resources.files(__name__).joinpath(kind).iterdir():
        name = file.name.removesuffix(".txt")
        write_whole(folder / name, file.read_text("utf-8").replace("NAME", folder.resolve().name).encode())
        written.append(name)
    return sorted(written)
