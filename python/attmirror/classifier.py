"""A classifier that attends to one token of each sample: softmax attention behind scikit-learn's interface."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin  # type: ignore[import-untyped, unused-ignore]
from sklearn.utils.multiclass import check_classification_targets, type_of_target  # type: ignore[import-untyped, unused-ignore]
from sklearn.utils.validation import check_is_fitted, validate_data  # type: ignore[import-untyped, unused-ignore]

from ._compare import attention as attention_of
from ._data import Dataset
from ._descent import descend
from ._margin import MarginSolution, max_margin
from .optimizers import Optimizer, optimizer


class AttentionClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc, unused-ignore]
    """Binary classification by softmax attention over tokens, f = v^T X^T softmax(X W z).

    Each sample is a row of numbers, read as tokens. Attention weights W and decoder v are trained by mirror descent;
    with p near 1 the weights become sparse. After fitting, the max-margin problem for the selected tokens is solved and
    certified.

    Parameters
    ----------
    token_dim : int or None
        How many numbers make a token: a row of T * token_dim numbers is T tokens, one after the other. None: every
        feature is a token, its value at its own coordinate and 1 at the last (dimension features + 1).
    p : float
        Of mirror descent, 1 < p < infinity.
    lr, steps, normalized : float, int, bool
        Of the training.
    query : "mean" or "last"
        What attends: the mean of a sample's tokens, or its last token.
    decoder : "train" or "mean"
        Train v along with W, or fix it to the difference of the classes' mean tokens.
    norm : float, str or None
        Of the max-margin problem; None: that of the optimizer's geometry.
    optimizer : Optimizer or None
        In place of mirror descent with p, lr and normalized.
    certify : bool
        Whether to solve the max-margin problem after training.

    Attributes
    ----------
    classes_ : array (2,)
    W_, v_ : arrays
        The trained weights.
    run_ : Run
    selected_tokens_ : array (n,)
        The token that each training sample attends to.
    support_tokens_ : array (k, 3)
        Sequence, query and token of the constraints that hold the max-margin solution in place.
    margin_ : float
        The largest margin for the selected tokens, 1 / norm of the solution; NaN where there is none.
    dual_gap_ : float
        Of its certificate.
    """

    def __init__(
        self,
        token_dim: int | None = None,
        p: float = 2.0,
        lr: float = 0.1,
        steps: int = 500,
        normalized: bool = True,
        query: str = "mean",
        decoder: str = "train",
        norm: Any = None,
        optimizer: Optimizer | None = None,
        certify: bool = True,
    ) -> None:
        self.token_dim = token_dim
        self.p = p
        self.lr = lr
        self.steps = steps
        self.normalized = normalized
        self.query = query
        self.decoder = decoder
        self.norm = norm
        self.optimizer = optimizer
        self.certify = certify

    # ---- rows as tokens

    def _tokens(self, X: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """(n, T, d); numbers are scaled by what was seen in training, so that units do not matter."""
        scaled = (X - self._centre) / self._scale
        n, features = X.shape
        if self.token_dim is None:
            tokens = np.zeros((n, features, features + 1))
            tokens[:, np.arange(features), np.arange(features)] = scaled
            tokens[:, :, features] = 1
            return tokens
        size = int(self.token_dim)
        if size < 1 or features % size:
            raise ValueError(f"token_dim is {self.token_dim}: expected a divisor of {features}, the number of features")
        return np.asarray(scaled.reshape(n, features // size, size))

    def _dataset(self, X: npt.NDArray[np.float64], labels: Any, v: Any = None) -> Dataset:
        tokens = self._tokens(X)
        if self.query not in ("mean", "last"):
            raise ValueError(f'query is "{self.query}": expected mean or last')
        queries = tokens.mean(axis=1) if self.query == "mean" else tokens[:, -1]
        # The lengths say that there is no padding: a constant feature may well be a token of zeros.
        return Dataset(tokens, queries, labels, v, lengths=np.full(len(tokens), tokens.shape[1]))

    def _rule(self) -> Optimizer:
        if self.optimizer is not None:
            return self.optimizer
        return optimizer("md", p=self.p, lr=self.lr, normalized=self.normalized)

    # ---- scikit-learn's methods

    def fit(self, X: Any, y: Any) -> AttentionClassifier:
        """Trains on rows X (n, features) and their classes y, of which there are two."""
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        kind = type_of_target(y, input_name="y")
        self.classes_, indices = np.unique(y, return_inverse=True)
        if kind != "binary" or len(self.classes_) > 2:
            raise ValueError(f"Only binary classification is supported. The type of the target is {kind}.")
        if len(self.classes_) < 2:
            raise ValueError(f"The classifier needs samples of 2 classes; the data have one class, {self.classes_[0]!r}")
        if self.decoder not in ("train", "mean"):
            raise ValueError(f'decoder is "{self.decoder}": expected train or mean')
        self._centre = X.mean(axis=0)
        spread = X.std(axis=0)
        self._scale = np.where(spread > 0, spread, 1.0)
        labels = np.where(indices == 1, 1.0, -1.0)
        tokens = self._tokens(X)
        means = tokens.mean(axis=1)
        v = means[labels > 0].mean(axis=0) - means[labels < 0].mean(axis=0)
        size = np.linalg.norm(v)
        v = v / size if size > 0 else np.eye(len(v))[0]
        data = self._dataset(X, labels, v)
        train = "W,v" if self.decoder == "train" else "W"
        self.run_ = descend(data, self._rule(), self.steps, train=train, record="none", keep="metrics")
        if self.run_.status == "diverged":
            raise ValueError(f"the training diverged at step {self.run_.steps}: expected a smaller lr than {self.lr}")
        self.W_ = self.run_.W
        self.v_ = self.run_.v
        self.n_iter_ = max(self.run_.steps, 1)
        self.selected_tokens_ = self.run_.selected_tokens
        self._solve(data)
        return self

    def _solve(self, data: Dataset) -> None:
        """The max-margin problem of the selected tokens."""
        self.solution_: MarginSolution | None = None
        self.support_tokens_ = np.zeros((0, 3), dtype=np.int64)
        self.margin_ = self.dual_gap_ = float("nan")
        if not self.certify or data.X.shape[1] < 2:
            return
        norm = self.norm if self.norm is not None else self._rule().geometry_norm or 2.0
        self.solution_ = max_margin(data, self.selected_tokens_, norm)
        if self.solution_.status == "certified":
            self.support_tokens_ = self.solution_.support
            self.margin_ = self.solution_.margin
            self.dual_gap_ = self.solution_.gap

    def _prepared(self, X: Any) -> Dataset:
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return self._dataset(X, np.ones(len(X)), self.v_)

    def decision_function(self, X: Any) -> npt.NDArray[np.float64]:
        """v^T X^T softmax(X W z) of each sample; positive means classes_[1]."""
        data = self._prepared(X)
        probabilities, _ = attention_of(data, self.W_)
        return np.asarray(np.einsum("nt,ntd,d->n", probabilities, data.X, self.v_))

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The class of each sample."""
        positive = self.decision_function(X) > 0
        return np.asarray(self.classes_[positive.astype(int)])

    def attention(self, X: Any) -> npt.NDArray[np.float64]:
        """Attention probabilities (n, tokens)."""
        return np.asarray(attention_of(self._prepared(X), self.W_)[0])

    def select(self, X: Any) -> npt.NDArray[np.int64]:
        """The token that each sample attends to most."""
        return attention_of(self._prepared(X), self.W_)[1]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags
