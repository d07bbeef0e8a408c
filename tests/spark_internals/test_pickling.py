"""What many pickles have in common."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Any

from tidemill.runtime.spark.epoch.runner import Work
from tidemill.spark_internals.pickling import Kept


@dataclass(frozen=True)
class Large:
    text: str
    function: Any


def test_a_kept_value_is_unpickled_once() -> None:
    """Also one with a function that only cloudpickle can send; what is equal and not kept is made anew."""
    large = Large("x" * 1000, lambda: 7)
    kept = Kept([large])
    first, second = (pickle.loads(kept.pickled({"epoch": n, "of": [large, large]})) for n in (1, 2))
    assert (first["epoch"], second["epoch"]) == (1, 2)
    assert first["of"][0] is first["of"][1] is second["of"][0]
    assert first["of"][0].text == large.text
    assert first["of"][0].function() == 7
    other = Large("x" * 1000, None)
    assert pickle.loads(kept.pickled([other]))[0] is not pickle.loads(kept.pickled([other]))[0]


def test_tidemills_objects_may_have_a_function_that_only_cloudpickle_can_send() -> None:
    work = Work(maps=(lambda batches: iter([*batches, *batches]),), read=None, given=())
    assert pickle.loads(Kept(()).pickled(work)).run([None]) == [None, None]


def test_jobs_keep_their_own_values() -> None:
    value = ["a"]
    one, other = Kept([value]), Kept([value])
    assert pickle.loads(one.pickled([value]))[0] is not pickle.loads(other.pickled([value]))[0]
