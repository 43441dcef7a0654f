from mlconsensus.engines.progress import reporter, track


def test_only_the_outermost_work_is_shown():
    shown = []

    def show(items, total, doing):
        shown.append((doing, total))
        yield from items

    token = reporter.set(show)
    try:
        for _ in track("ab", 2, "outer"):
            assert list(track("xyz", 3, "inner")) == ["x", "y", "z"]
        assert list(track("c", 1, "next")) == ["c"]
    finally:
        reporter.reset(token)
    assert shown == [("outer", 2), ("next", 1)]


def test_without_a_reporter_nothing_is_shown():
    assert list(track("ab", 2, "reading")) == ["a", "b"]
