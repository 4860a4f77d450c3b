"""What the loop promises, checked on a broker in memory and on the real one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from consumers.dead_letters import ATTEMPTS, HEADERS, OFFSET, REASON, TOPIC, BrakeRules
from consumers.intake import Received
from consumers.loop import LoopRules, run
from consumers.membership import FETCH_BYTES, MemberRules
from consumers.patience import BackoffRules
from pipeline.broker import MAX_MESSAGE_BYTES, Outgoing, dead_topic
from pipeline.errors import DeviceLostError, RetriableError
from pipeline.values import Priority
from tests.contract.conftest import Cluster, MemoryCluster
from tests.contract.loop_tools import Copy, GatedSender, KilledError, Member, QuickClock, Recorder, SpiedConsumer

HASTY = BackoffRules(first_ms=1, longest_ms=2)


class Line:
    """One topic in, one topic out, one group."""

    def __init__(self, cluster: Cluster, name: str, partitions: int = 1) -> None:
        self.cluster, self.source, self.target = cluster, f"{name}.in", f"{name}.out"
        self.rules = LoopRules(f"{name}.group", {Priority.NORMAL: self.source}, backoff=HASTY)
        self.sender = cluster.sender()
        cluster.create(self.source, partitions)
        cluster.create(self.target, 1)
        cluster.create(dead_topic(self.source), 1)

    def write(self, values: Sequence[bytes], keys: int = 1, topic: str = "") -> None:
        outgoings = [Outgoing(topic or self.source, f"course {at % keys}", value) for at, value in enumerate(values)]
        self.sender.send(outgoings)

    def consumer(self, dies_at_commit: int = 0, rules: MemberRules | None = None) -> SpiedConsumer:
        group = self.rules.group
        opened = self.cluster.consumer(group, rules) if rules else self.cluster.consumer(group)
        return SpiedConsumer(opened, dies_at_commit)

    def committed(self) -> int:
        return self.cluster.committed(self.rules.group, self.source)

    def results(self) -> list[bytes]:
        return [record.value for record in self.cluster.read(self.target)]


@pytest.fixture
def line(cluster: Cluster, name: str) -> Line:
    return Line(cluster, name)


@pytest.fixture
def wide_line(cluster: Cluster, name: str) -> Line:
    return Line(cluster, name, partitions=4)


def numbers(count: int) -> list[bytes]:
    return [b"%04d" % at for at in range(count)]


def test_each_message_is_handled_once_and_committed(line: Line) -> None:
    line.write(numbers(100))
    step = Copy(line.target)
    with Member(step, line.consumer(), line.sender, line.rules):
        step.await_handled(100)
    assert step.handled == line.results() == numbers(100)
    assert line.committed() == 100


def test_a_message_is_not_committed_before_its_result_is_delivered(line: Line) -> None:
    line.write([b"one"])
    sender = GatedSender(line.sender)
    with Member(Copy(line.target), line.consumer(), sender, line.rules):
        assert sender.entered.wait(30)
        assert line.committed() == 0
        sender.gate.set()
    assert line.committed() == 1


def test_a_loop_killed_between_sending_and_committing_repeats_its_messages_and_loses_none(line: Line) -> None:
    line.write(numbers(10))
    with pytest.raises(KilledError):
        run(Copy(line.target), line.consumer(dies_at_commit=1), line.sender, line.rules)
    sent = line.results()
    assert sent
    assert line.committed() == 0
    step = Copy(line.target)
    with Member(step, line.consumer(), line.sender, line.rules):
        step.await_handled(10)
    assert line.results() == sent + numbers(10)
    assert line.committed() == 10


@pytest.mark.parametrize(
    ("value", "reason"), [(b"bad", "these bytes are no message"), (b"odd", "its media is not known")]
)
def test_a_bad_message_goes_to_the_dead_topic_unchanged_with_its_reason_and_the_loop_goes_on(
    line: Line, value: bytes, reason: str
) -> None:
    line.write([b"one"])
    line.sender.send([Outgoing(line.source, b"\xff\x00", value, (("trace", b"\x01"),))])
    line.write([b"two"])
    step, recorder = Copy(line.target), Recorder()
    with Member(step, line.consumer(), line.sender, line.rules, recorder):
        recorder.until(lambda: len(recorder.dead_letters) == 1)
        step.until(lambda: b"two" in step.handled)
    [dead] = line.cluster.read(dead_topic(line.source))
    assert (dead.key, dead.value) == (b"\xff\x00", value)
    headers = dict(dead.headers)
    assert set(headers) == {"trace", *HEADERS}
    assert headers["trace"] == b"\x01"
    assert headers[REASON].decode() == reason
    assert (headers[TOPIC].decode(), headers[OFFSET], headers[ATTEMPTS]) == (line.source, b"1", b"1")
    assert line.results() == [b"one", b"two"]
    assert line.committed() == 3


def test_a_topic_that_fails_wholesale_stops_the_loop_before_it_is_emptied(line: Line) -> None:
    line.write([b"good", *[b"bad"] * 10])
    rules = replace(line.rules, max_batch=1, brake=BrakeRules(window=5, most_dead=2))
    with pytest.raises(RetriableError, match="fails wholesale: 3 of its last 4 messages"):
        run(Copy(line.target), line.consumer(), line.sender, rules)
    assert len(line.cluster.read(dead_topic(line.source))) == 2
    assert line.committed() == 3


def test_a_result_too_large_to_send_makes_its_message_a_dead_letter(line: Line) -> None:
    class Inflate(Copy):
        def handle(self, batch: Sequence[Received]) -> list[list[Outgoing]]:
            return [[Outgoing(self.target, one.key, one.value * MAX_MESSAGE_BYTES)] for one in batch]

    line.write([b"1"])
    recorder = Recorder()
    with Member(Inflate(line.target), line.consumer(), line.sender, line.rules, recorder):
        recorder.until(lambda: len(recorder.dead_letters) == 1)
    assert b"the limit is" in dict(line.cluster.read(dead_topic(line.source))[0].headers)[REASON]
    assert line.results() == []
    assert line.committed() == 1


def test_a_retriable_error_keeps_the_offset_and_brings_the_same_batch_again(line: Line) -> None:
    line.write(numbers(5))
    step = Copy(line.target)
    step.failures = [RetriableError("the database is away"), RetriableError("still")]
    committed: list[int] = []
    recorder = Recorder(lambda: committed.append(line.committed()))
    with Member(step, line.consumer(), line.sender, line.rules, recorder):
        step.await_handled(5)
    assert committed == [0, 0]
    assert step.begun[0] == step.begun[1] == step.begun[2]
    assert line.results() == numbers(5)
    assert line.committed() == 5


def test_a_batch_that_could_not_be_sent_is_sent_again_without_the_step(line: Line) -> None:
    line.write([b"one"])
    sender = GatedSender(line.sender, failures=2)
    sender.gate.set()
    step, recorder = Copy(line.target), Recorder()
    with Member(step, line.consumer(), sender, line.rules, recorder):
        recorder.until(lambda: len(recorder.retries) == 2)
    assert step.begun == [[b"one"]]
    assert line.results() == [b"one"]
    assert line.committed() == 1


def test_a_loop_whose_process_has_lost_its_device_ends_at_once_with_the_offset_kept(line: Line) -> None:
    line.write([b"one"])
    step = Copy(line.target)
    step.failures = [DeviceLostError("the engine failed on a batch of 1 slices: invalid device ordinal")] * 9
    with pytest.raises(DeviceLostError, match="invalid device ordinal"):
        run(step, line.consumer(), line.sender, line.rules, clock=QuickClock())
    assert step.begun == [[b"one"]]
    assert line.committed() == 0


def test_a_loop_whose_surroundings_stay_unwell_gives_up_with_the_offset_kept(line: Line) -> None:
    line.write([b"one"])
    step = Copy(line.target)
    step.failures = [RetriableError("the database is away")] * 9
    rules = replace(line.rules, backoff=BackoffRules(give_up_ms=1000))
    with pytest.raises(RetriableError, match=r"gave up after .* the database is away"):
        run(step, line.consumer(), line.sender, rules, clock=QuickClock())
    assert line.committed() == 0


def test_an_unexpected_exception_ends_the_loop_without_a_commit(line: Line) -> None:
    line.write([b"one"])
    step = Copy(line.target)
    step.failures = [ZeroDivisionError()]
    with pytest.raises(ZeroDivisionError):
        run(step, line.consumer(), line.sender, line.rules)
    assert line.results() == []
    assert line.committed() == 0


def test_a_stop_finishes_and_commits_the_batch_in_flight_and_begins_no_other(line: Line) -> None:
    line.write(numbers(10))
    step = Copy(line.target)
    step.gate.clear()
    rules = replace(line.rules, max_batch=2)
    with Member(step, line.consumer(), line.sender, rules) as member:
        step.await_begun(1)
        member.stop.set()
        assert member.is_running
        step.gate.set()
    assert len(step.begun) == 1
    assert line.results() == step.begun[0]
    assert line.committed() == len(step.begun[0])


def test_a_batch_is_no_larger_than_the_step_has_room_for(line: Line) -> None:
    line.write(numbers(7))
    step = Copy(line.target)
    rules = replace(line.rules, max_batch=6, room=lambda: 1 if step.begun else 2)
    with Member(step, line.consumer(), line.sender, rules):
        step.await_handled(7)
    assert len(step.begun[0]) <= 2
    assert {len(batch) for batch in step.begun[1:]} == {1}


def test_a_stop_while_waiting_for_better_times_leaves_at_once_with_the_offset_kept(line: Line) -> None:
    line.write([b"one"])
    step, recorder = Copy(line.target), Recorder()
    step.failures = [RetriableError("the database is away")] * 9
    rules = replace(line.rules, backoff=BackoffRules(first_ms=3_600_000, longest_ms=3_600_000))
    with Member(step, line.consumer(), line.sender, rules, recorder):
        recorder.until(lambda: len(recorder.retries) == 1)
    assert line.committed() == 0


def test_a_batch_longer_than_the_poll_interval_keeps_its_partitions(line: Line) -> None:
    line.write([b"one"])
    step = Copy(line.target, hold_s=2.5)
    consumer = line.consumer(rules=MemberRules(6000, heartbeat_interval_ms=200, max_poll_interval_ms=1000))
    rules = replace(line.rules, revoke_wait_ms=500)
    with Member(step, consumer, line.sender, rules):
        step.await_handled(1)
        assert set(consumer.changes) == {"assigned"}
    assert step.handled == [b"one"]
    assert line.committed() == 1


def test_a_partition_that_moves_waits_for_the_batch_in_flight_so_that_nothing_comes_twice(wide_line: Line) -> None:
    wide_line.write(numbers(40), keys=40)
    first, second = Copy(wide_line.target), Copy(wide_line.target)
    first.gate.clear()
    consumer = wide_line.consumer()
    rules = replace(wide_line.rules, max_batch=64)
    with Member(first, consumer, wide_line.sender, rules):
        first.await_begun(1)
        consumer.until(lambda: consumer.polled == 40)
        with Member(second, wide_line.consumer(), wide_line.cluster.sender(), rules):
            consumer.until(lambda: "revoked" in consumer.changes)
            first.gate.set()
            wide_line.write(numbers(80)[40:], keys=40)
            second.await_handled(1)
            first.until(lambda: len(first.handled) + len(second.handled) >= 80)
    assert sorted(first.handled + second.handled) == numbers(80)
    assert sorted(wide_line.results()) == numbers(80)
    assert wide_line.committed() == 80


def test_a_batch_too_slow_for_a_partition_that_moves_is_done_again_by_its_new_owner(wide_line: Line) -> None:
    wide_line.write(numbers(40), keys=40)
    first, second = Copy(wide_line.target), Copy(wide_line.target)
    first.gate.clear()
    rules = replace(wide_line.rules, max_batch=64, revoke_wait_ms=1)
    with Member(first, wide_line.consumer(), wide_line.sender, rules):
        first.await_begun(1)
        with Member(second, wide_line.consumer(), wide_line.cluster.sender(), rules):
            second.await_handled(1)
            first.gate.set()
            second.until(lambda: set(first.handled + second.handled) == set(numbers(40)))
    assert set(wide_line.results()) == set(numbers(40))
    assert wide_line.committed() == 40


def test_the_order_of_each_key_survives_deaths_and_newcomers(wide_line: Line) -> None:
    keys = 10
    wide_line.write(numbers(200), keys)
    rules = replace(wide_line.rules, max_batch=4, revoke_wait_ms=50)
    steps = [Copy(wide_line.target) for _ in range(3)]
    steps[0].gate.clear()
    with Member(steps[0], wide_line.consumer(), wide_line.sender, rules):
        steps[0].await_begun(1)
        dying = Member(steps[1], wide_line.consumer(dies_at_commit=3), wide_line.cluster.sender(), rules)
        with pytest.raises(KilledError), dying:
            dying.ended()
        steps[0].gate.set()
        with Member(steps[2], wide_line.consumer(), wide_line.cluster.sender(), rules):
            wide_line.write(numbers(400)[200:], keys)
            everything = set(numbers(400))
            steps[0].until(lambda: {value for step in steps for value in step.handled} >= everything)
    results = wide_line.results()
    for key in range(keys):
        of_key = numbers(400)[key::keys]
        assert list(dict.fromkeys(value for value in results if value in of_key)) == of_key
    assert wide_line.committed() == 400


def test_urgent_messages_overtake_bulk_which_still_gets_its_share(cluster: Cluster, name: str) -> None:
    line = Line(cluster, name)
    urgent, bulk = f"{name}.urgent", f"{name}.bulk"
    for topic in (urgent, bulk):
        cluster.create(topic, 1)
    rules = replace(line.rules, topics={Priority.URGENT: urgent, Priority.BULK: bulk}, max_batch=8)
    line.write([b"bulk"] * 40, topic=bulk)
    step, consumer = Copy(line.target), line.consumer()
    step.gate.clear()
    with Member(step, consumer, line.sender, rules):
        step.await_begun(1)
        line.write([b"urgent"] * 21, topic=urgent)
        consumer.until(lambda: consumer.polled == 61)
        step.gate.set()
        step.await_handled(61)
    assert set(step.begun[0]) == {b"bulk"}
    assert step.begun[1:4] == [[b"urgent"] * 7 + [b"bulk"]] * 3


def test_the_next_batch_is_prepared_while_the_step_works(line: Line) -> None:
    line.write(numbers(10))
    step = Copy(line.target)
    step.gate.clear()
    with Member(step, line.consumer(), line.sender, replace(line.rules, max_batch=2)):
        step.until(lambda: len(step.begun) == 1 and set(step.prepared) > set(step.begun[0]))
        assert len(step.begun) == 1
        step.gate.set()


def test_a_full_buffer_pauses_its_topic_and_loses_nothing(line: Line) -> None:
    large = [value + bytes(500_000) for value in numbers(60)]
    line.write(large)
    step, consumer = Copy(line.target), line.consumer()
    step.gate.clear()
    rules = replace(line.rules, max_batch=4, buffer_messages=10)
    with Member(step, consumer, line.sender, rules):
        consumer.until(lambda: bool(consumer.paused))
        assert consumer.polled <= 4 + 10 + FETCH_BYTES // 500_000
        step.gate.set()
        step.await_handled(60)
    assert line.results() == large


def test_a_full_buffer_of_one_topic_does_not_hold_up_another(cluster: Cluster, name: str) -> None:
    line = Line(cluster, name)
    urgent, bulk = f"{name}.urgent", f"{name}.bulk"
    for topic in (urgent, bulk):
        cluster.create(topic, 1)
    rules = replace(line.rules, topics={Priority.URGENT: urgent, Priority.BULK: bulk}, max_batch=4, buffer_messages=10)
    line.write([b"bulk"] * 50, topic=bulk)
    step, consumer = Copy(line.target), line.consumer()
    step.gate.clear()
    with Member(step, consumer, line.sender, rules):
        consumer.until(lambda: bool(consumer.paused))
        before = consumer.polled
        line.write([b"urgent"], topic=urgent)
        consumer.until(lambda: consumer.polled == before + 1)
        step.gate.set()
        step.await_handled(51)
    assert b"urgent" in step.begun[1]


def test_what_is_sent_carries_on_the_trace_of_its_message(line: Line) -> None:
    class Tracing(Recorder):
        def carried_on(self, message: Received) -> tuple[tuple[str, bytes], ...]:
            return (("trace", dict(message.headers)["trace"] + b"+"),)

    line.sender.send([Outgoing(line.source, "course", b"one", (("trace", b"7"),))])
    step = Copy(line.target)
    with Member(step, line.consumer(), line.sender, line.rules, Tracing()):
        step.await_handled(1)
    assert [tuple(record.headers) for record in line.cluster.read(line.target)] == [(("trace", b"7+"),)]


def test_the_hooks_hear_of_each_batch_how_long_it_waited_and_what_lies_behind_it(line: Line) -> None:
    line.write(numbers(10))
    step, recorder = Copy(line.target), Recorder()
    with Member(step, line.consumer(), line.sender, replace(line.rules, max_batch=4), recorder):
        step.await_handled(10)
    assert sum(len(taken.messages) for taken in recorder.taken_batches) == sum(recorder.handled_messages) == 10
    for taken in recorder.taken_batches:
        assert 0 <= taken.waited_ms < 600_000
        [(place, lag)] = taken.lag.items()
        assert place.topic == line.source
        assert lag == 9 - taken.messages[-1].offset


def test_a_member_put_out_of_its_group_never_commits_what_it_lost(memory: MemoryCluster, name: str) -> None:
    line = Line(memory, name)
    line.write([b"one"])
    step, consumer = Copy(line.target), line.consumer()
    step.gate.clear()
    with Member(step, consumer, line.sender, line.rules):
        step.await_begun(1)
        consumer.expel()
        consumer.until(lambda: consumer.changes == ["assigned", "lost", "assigned"])
        step.gate.set()
        step.await_handled(2)
    assert step.handled == [b"one", b"one"]
    assert consumer.commits == line.committed() == 1


def test_a_loop_whose_brokers_stay_away_gives_up(memory: MemoryCluster, name: str) -> None:
    line = Line(memory, name)
    memory.broker.is_away = True
    rules = replace(line.rules, backoff=BackoffRules(give_up_ms=1000))
    with pytest.raises(RetriableError, match="the brokers cannot be reached"):
        run(Copy(line.target), line.consumer(), line.sender, rules, clock=QuickClock())


def test_a_loop_whose_brokers_fall_silent_gives_up_although_it_has_nothing_to_do(
    memory: MemoryCluster, name: str
) -> None:
    line = Line(memory, name)
    line.write([b"one"])
    step = Copy(line.target)
    rules = replace(line.rules, backoff=BackoffRules(give_up_ms=1000))
    consumer = line.consumer()

    def fall_silent() -> None:
        with Member(step, consumer, line.sender, rules, clock=QuickClock()) as member:
            consumer.until(lambda: consumer.commits == 1)
            memory.broker.is_away = True
            member.ended()

    with pytest.raises(RetriableError, match="the brokers cannot be reached"):
        fall_silent()
