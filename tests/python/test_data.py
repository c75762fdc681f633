"""Datasets: arrays in and out, and what is refused."""

import pickle
import warnings

import numpy as np
import pytest

import attmirror as am
from conftest import bits

RNG = np.random.default_rng(7)


def arrays(n=4, T=5, d=3):
    return (RNG.normal(size=(n, T, d)), RNG.normal(size=(n, d)), np.where(RNG.random(n) < 0.5, -1, 1),
            RNG.normal(size=d))


def test_arrays_come_back():
    X, Z, Y, v = arrays()
    data = am.Dataset(X, Z, Y, v)
    assert bits(np.ascontiguousarray(data.X), X) and bits(np.ascontiguousarray(data.Z), Z) and bits(data.v, v)
    assert data.Y.tolist() == Y.tolist()
    assert (data.samples, data.dim, len(data), data.queries) == (4, 3, 4, 4)
    assert repr(data) == "<attmirror.Dataset: 4 sequences of 5 tokens, dimension 3, with decoder>"
    assert "decoder" in data._repr_html_()


def test_tokens_are_views_that_outlive_their_dataset():
    data = am.Dataset(*arrays())
    first, second = data.X, data.X
    assert first.__array_interface__["data"] == second.__array_interface__["data"]
    with pytest.raises(ValueError):
        first[0, 0, 0] = 1
    copy = first.copy()
    del data, second
    assert bits(np.ascontiguousarray(first), copy)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int64, np.int8, ">f8"])
def test_number_types(dtype):
    X, Z, Y, v = arrays()
    X = (8 * X).round().astype(dtype)
    assert am.Dataset(X, Z, Y, v) == am.Dataset(X.astype(np.float64), Z, Y, v)


def test_any_layout():
    X, Z, Y, v = arrays()
    same = am.Dataset(X, Z, Y, v)
    assert am.Dataset(np.asfortranarray(X), Z[::-1][::-1], Y.tolist(), tuple(v)) == same
    X.flags.writeable = False
    assert am.Dataset(X, Z, Y, v) == same
    assert am.Dataset(X.tolist(), Z, Y, v) == same


def test_ragged_in_three_forms():
    parts = [RNG.normal(size=(t, 3)) for t in (2, 5, 1)]
    Z, Y = RNG.normal(size=(3, 3)), [1, -1, 1]
    data = am.Dataset(parts, Z, Y)
    assert data.lengths.tolist() == [2, 5, 1] and data.X.shape == (8, 3)
    padded = np.full((3, 5, 3), np.nan)
    for i, part in enumerate(parts):
        padded[i, : len(part)] = part
    assert am.Dataset(padded, Z, Y, lengths=[2, 5, 1]) == data
    assert am.Dataset(np.concatenate(parts), Z, Y, lengths=[2, 5, 1]) == data
    assert bits(np.ascontiguousarray(data.sequence(-2)), parts[1])


def test_queries_masks_and_self_attention():
    X, _, Y, v = arrays()
    several = am.Dataset(X, RNG.normal(size=(4, 2, 3)), Y, v)
    assert several.queries == 8 and several.Z.shape == (4, 2, 3) and several.Y.shape == (4, 2)
    mask = np.ones((4, 5), dtype=bool)
    mask[:, 0] = False
    assert am.Dataset(X, RNG.normal(size=(4, 3)), Y, v, mask=mask).mask == "custom"
    causal = am.Dataset(X, None, Y, v, query_index=[4, 3, 2, 1], causal=True)
    assert causal.mask == "causal"
    run = am.descend(causal, am.GradientDescent(lr=1), steps=5)
    assert (np.asarray(run.attention())[3, 2:] == 0).all()


def test_files(tmp_path):
    data = am.generate(seed=3)
    assert data.path == ""
    data.save(tmp_path / "data.npz")
    assert am.load_dataset(tmp_path / "data.npz") == data
    assert bits(np.load(tmp_path / "data.npz")["X"], np.ascontiguousarray(data.X))


def test_pickle():
    causal = am.generate(query_from="all").causal()
    for data in (am.generate(min_tokens=3), causal):
        again = pickle.loads(pickle.dumps(data))
        assert again == data and again.mask == data.mask and hash(again) == hash(data)


def test_generators():
    kinds = am.generators()
    assert kinds["sphere"]["settings"]["samples"] == 6
    for kind in kinds:
        assert am.generate(kind).samples >= 1
    with pytest.raises(ValueError, match="samples is given, but the joint data have fixed sizes and no seed"):
        am.generate("joint", samples=3)
    with pytest.raises(TypeError, match='generate\\(\\) has no argument sampels; did you mean "samples"?'):
        am.generate(sampels=3)


@pytest.mark.parametrize("change, message", [
    (dict(Y=[1, 0, 1, 1]), r"labels\[1\] is 0: expected -1 or \+1 \(array Y\)"),
    (dict(Z=np.zeros((4, 2))), r"Z has shape \(4, 2\): expected"),
    (dict(v=[1, 2]), r"v has shape \(2,\): expected \(3,\) to match X \(4, 5, 3\)"),
    (dict(X=np.full((4, 5, 3), np.nan)), r"X\[0,0,0\] is nan: expected a finite number"),
    (dict(lengths=[9, 1, 1, 1]), r"lengths\[0\] is 9: expected 1 to 5"),
    (dict(mask=np.zeros((4, 5))), r"mask\[0\] allows no token of sequence 0"),
])
def test_refused(change, message):
    X, Z, Y, v = arrays()
    with pytest.raises(ValueError, match=message):
        am.Dataset(**{**dict(X=X, Z=Z, Y=Y, v=v), **change})


def test_errors_say_where():
    X, Z, _, v = arrays()
    with pytest.raises(am.InputError) as caught:
        am.Dataset(X, Z, [1, 1, 3, 1], v)
    assert (caught.value.field, caught.value.index, caught.value.value) == ("labels", 2, "3")
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value) and again.index == 2


def test_other_types_are_refused():
    X, Z, Y, v = arrays()
    with pytest.raises(TypeError, match="X has the type complex128"):
        am.Dataset(X.astype(complex), Z, Y, v)
    with pytest.raises(ValueError, match="missing array Y"):
        am.Dataset(X, Z)


def test_files_that_fail(tmp_path):
    with pytest.raises(ValueError, match="nothing.npz"):
        am.load_dataset(tmp_path / "nothing.npz")
    with pytest.raises(OSError):
        am.generate().save(tmp_path / "no" / "folder" / "data.npz")
    (tmp_path / "junk.npz").write_bytes(b"junk")
    with pytest.raises(ValueError, match="junk.npz"):
        am.load_dataset(tmp_path / "junk.npz")


def test_padding_does_not_matter(tmp_path):
    parts = [np.random.default_rng(i).normal(size=(length, 3)) for i, length in enumerate((2, 5, 1))]
    Z, Y = np.ones((3, 3)), [1, -1, 1]
    ragged = am.Dataset(parts, Z, Y)
    for padding in (0.0, np.nan, np.inf):
        padded = np.full((3, 6, 3), padding)
        for i, part in enumerate(parts):
            padded[i, : len(part)] = part
        data = am.Dataset(padded, Z, Y, lengths=[2, 5, 1])
        assert data == ragged and data.X.tobytes() == ragged.X.tobytes()
        np.savez(tmp_path / "padded.npz", X=padded, Z=Z, Y=Y, lengths=[2, 5, 1])
        assert am.load_dataset(tmp_path / "padded.npz") == ragged
    with pytest.raises(ValueError, match=r"lengths\[1\] is 7: expected 1 to 6, the tokens of X \(3, 6, 3\)"):
        am.Dataset(padded, Z, Y, lengths=[2, 7, 1])
    with pytest.raises(ValueError, match=r"lengths has shape \(2,\): expected \(3,\)"):
        am.Dataset(padded, Z, Y, lengths=[2, 5])


def test_padding_without_lengths_is_warned_of(tmp_path):
    X, Z, Y, v = arrays()
    X = np.array(X)
    X[1, 3:] = 0
    X[3, 4:] = 0
    with pytest.warns(am.PaddingWarning, match=r"sequence 1 ends in 2 rows of zeros \(3 rows .* in 2 sequences") as caught:
        data = am.Dataset(X, Z, Y, v)
    assert caught[0].filename == __file__
    data.save(tmp_path / "data.npz")
    with pytest.warns(am.PaddingWarning, match="data.npz: sequence 1 ends in 2 rows"):
        am.load_dataset(tmp_path / "data.npz")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tokens = am.Dataset(X, Z, Y, v, lengths=[5] * 4)
        assert tokens == data and pickle.loads(pickle.dumps(data)) == data
        tokens.save(tmp_path / "tokens.npz")
        assert am.load_dataset(tmp_path / "tokens.npz") == data
