"""MLflow: a run on the server that MLFLOW_TRACKING_URI names, or else in files beside the run folders."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mlflow.entities import Metric, Param
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient

from pushcen.config import flat
from pushcen.simulation import Quiet
from pushcen.tracking.observers import scalars, step

_EXPERIMENT = "pushcen"


class MLflow(Quiet):
    """Logs the config as parameters, every row as metrics; a resumed run goes on in the same MLflow run."""

    def __init__(self, folder: Path, config: Mapping[str, Any]) -> None:
        self._folder, self._config = folder, config
        uri = os.environ.get("MLFLOW_TRACKING_URI")
        if uri is None:  # without a server, files; MLflow has to be told that they are meant
            os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
            uri = (folder.absolute().parent / "mlruns").as_uri()
        self._client = MlflowClient(uri)
        self._run = ""

    def started(self, info: dict[str, Any]) -> None:  # noqa: ARG002
        """Open the run, or create it."""
        note = self._folder / "mlflow_run"
        self._run = note.read_text().strip() if note.is_file() else ""
        try:
            if self._run:
                self._client.update_run(self._run, status="RUNNING")
                return
        except MlflowException:  # another server than the run began with
            pass
        found = self._client.get_experiment_by_name(_EXPERIMENT)
        experiment = found.experiment_id if found else self._client.create_experiment(_EXPERIMENT)
        self._run = self._client.create_run(experiment, run_name=self._folder.name).info.run_id
        note.write_text(self._run)
        parameters = [Param(key, str(value)[:500]) for key, value in flat(self._config).items()]
        for begin in range(0, len(parameters), 100):  # at most a hundred in one request
            self._client.log_batch(self._run, params=parameters[begin : begin + 100])

    def evaluated(self, row: dict[str, Any]) -> None:
        """Log a row."""
        at = step(row)
        self._client.log_batch(self._run, [Metric(name, value, at, at) for name, value in scalars(row).items()])

    def ended(self, summary: dict[str, Any]) -> None:
        """Close the run."""
        done = summary.get("status") == "finished"
        self._client.set_terminated(self._run, "FINISHED" if done else "KILLED")
