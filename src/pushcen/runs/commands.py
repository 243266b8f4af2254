"""A plan of many runs as commands for a shell, one each, and as an array job for a cluster with Slurm."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from pushcen.config import Text


def shell_line(words: Sequence[str], settings: Mapping[str, Any]) -> str:
    r"""Return a command as a line for a shell: these words, and a `--set` for each setting.

    >>> shell_line(["pushcen", "simulate", "my world.toml"], {"data.alpha": 0.1, "data.label": " a"})
    'pushcen simulate \'my world.toml\' --set data.alpha=0.1 --set \'data.label=" a"\''
    """
    sets = [part for key, value in settings.items() for part in ("--set", f"{key}={_text(value)}")]
    return shlex.join([*words, *sets])


def slurm_script(name: str, lines: Sequence[str], after: str) -> str:
    """Return the file of an array job: task number i runs line i; `after` is the command that shows the table.

    >>> print(slurm_script("mine", ["pushcen simulate --folder a", "pushcen simulate --folder b"], "pushcen compare"))
    #!/bin/bash
    #SBATCH --job-name=mine
    #SBATCH --array=0-1
    #SBATCH --signal=B:INT@120
    # A run for each task. Start them with sbatch, in the folder in which this file was made; when it is started
    # again, what was interrupted goes on, and what is finished is not run again. Options, such as --time and
    # --cpus-per-task, may be added here or for sbatch; two minutes before the time is over, everything is saved.
    # The table of what is finished so far:
    # pushcen compare
    case "$SLURM_ARRAY_TASK_ID" in
    0) exec pushcen simulate --folder a ;;
    1) exec pushcen simulate --folder b ;;
    *) echo "SLURM_ARRAY_TASK_ID = '$SLURM_ARRAY_TASK_ID': must be a number from 0 to 1" >&2; exit 2 ;;
    esac
    """
    last = len(lines) - 1
    head = [
        "#!/bin/bash",
        f"#SBATCH --job-name={name}",
        f"#SBATCH --array=0-{last}",
        "#SBATCH --signal=B:INT@120",
        "# A run for each task. Start them with sbatch, in the folder in which this file was made; when it is started",
        "# again, what was interrupted goes on, and what is finished is not run again. Options, such as --time and",
        "# --cpus-per-task, may be added here or for sbatch; two minutes before the time is over, everything is saved.",
        "# The table of what is finished so far:",
        *(f"# {line}" for line in after.splitlines()),
        'case "$SLURM_ARRAY_TASK_ID" in',
    ]
    wrong = f"SLURM_ARRAY_TASK_ID = '$SLURM_ARRAY_TASK_ID': must be a number from 0 to {last}"
    body = [f"{number}) exec {line} ;;" for number, line in enumerate(lines)]
    return "\n".join([*head, *body, f'*) echo "{wrong}" >&2; exit 2 ;;', "esac"])


def _text(value: Any) -> str:
    """Return a value as `--set` reads it again."""
    if isinstance(value, bool):
        return str(value).lower()
    plain = str(value)
    if (
        isinstance(value, str)
        and not isinstance(value, Text)
        and (plain != plain.strip() or plain[:1] in tuple("\"'[{"))
    ):
        return '"' + plain.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return plain
