"""Settings for all tests: one torch thread, and hypothesis without deadlines, since the machine is shared."""

import hypothesis
import torch

torch.set_num_threads(1)
hypothesis.settings.register_profile("pushcen", deadline=None, print_blob=True)
hypothesis.settings.load_profile("pushcen")
