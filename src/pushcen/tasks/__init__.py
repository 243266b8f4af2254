"""Task functions that come with pushcen: plain objects, `(client, clients) -> Task`, that any process can hold.

>>> from pushcen.tasks import DataOptions, ImageTask
>>> task = ImageTask(DataOptions("digits", alpha=0.4), model="cnn", seed=0)(3, 20)
>>> len(task.train), len(task.test)
(93, 23)
"""

from pushcen.tasks.images import IMAGE_MODELS, ImageTask
from pushcen.tasks.options import DataOptions
from pushcen.tasks.table import TABLE_MODELS, TableTask

MODELS = (*IMAGE_MODELS, *TABLE_MODELS)

__all__ = ["IMAGE_MODELS", "MODELS", "TABLE_MODELS", "DataOptions", "ImageTask", "TableTask"]
