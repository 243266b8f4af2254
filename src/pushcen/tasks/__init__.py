"""Task functions that come with pushcen: plain objects, `(client, clients) -> Task`, that any process can hold.

>>> from pushcen.tasks import DataOptions, ImageTask
>>> task = ImageTask(DataOptions("digits", alpha=0.4), model="cnn", seed=0)(3, 20)
>>> len(task.train), len(task.test)
(93, 23)
"""

from pushcen.tasks.images import MODELS, DataOptions, ImageTask

__all__ = ["MODELS", "DataOptions", "ImageTask"]
