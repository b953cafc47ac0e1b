import numpy as np
import scipy.sparse
from benchopt import BaseDataset


class Dataset(BaseDataset):
    """A noisy picture of a disk on a slope; A is the identity."""

    name = "simulated"
    parameters = {"size": [128]}
    test_parameters = {"size": [16]}

    def get_data(self):
        rows, columns = np.indices((self.size, self.size)) / self.size
        picture = 1.0 * ((rows - 0.5) ** 2 + (columns - 0.4) ** 2 < 0.1) + 0.3 * rows
        noise = 0.15 * np.random.default_rng(0).standard_normal(picture.shape)
        return {"A": scipy.sparse.eye_array(self.size, format="csr"), "y": picture + noise}
