"""DAGs that wait for partitions of assets, and events about such partitions: what the recording and the test share.

`a` to `d` are assets. A step is (asset, partition key or None, partition date or None).
"""

DAGS = """
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import *

a, b, c, d = (Asset(name=name, uri=f"s3://x/{name}") for name in "abcd")
day = StartOfDayMapper()
SCHEDULES = {
    "same": PartitionedAssetTimetable(assets=a),
    "both": PartitionedAssetTimetable(assets=a & b),
    "either": PartitionedAssetTimetable(assets=a | b),
    "plain": [a],
    "days": PartitionedAssetTimetable(assets=a & b, default_partition_mapper=day),
    "berlin": PartitionedAssetTimetable(assets=a, default_partition_mapper=StartOfDayMapper(timezone="Europe/Berlin")),
    "mixed": PartitionedAssetTimetable(
        assets=a & b,
        partition_mapper_config={a: day, b: IdentityMapper()},
        default_partition_mapper=StartOfHourMapper(),
    ),
    "by_reference": PartitionedAssetTimetable(
        assets=Asset.ref(name="a") & Asset.ref(name="b"), partition_mapper_config={Asset.ref(name="a"): day}
    ),
    "never": PartitionedAssetTimetable(
        assets=a & b, partition_mapper_config={a: StartOfYearMapper(), b: StartOfHourMapper()}
    ),
    "week": PartitionedAssetTimetable(
        assets=c, default_partition_mapper=FanOutMapper(upstream_mapper=StartOfWeekMapper(), window=WeekWindow())
    ),
    "capped": PartitionedAssetTimetable(
        assets=c,
        default_partition_mapper=FanOutMapper(
            upstream_mapper=StartOfWeekMapper(), window=WeekWindow(), max_downstream_keys=3
        ),
    ),
    "week_and_day": PartitionedAssetTimetable(
        assets=c & a,
        partition_mapper_config={
            c: FanOutMapper(upstream_mapper=StartOfWeekMapper(), window=WeekWindow()), a: day
        },
    ),
    "regions": PartitionedAssetTimetable(
        assets=d,
        default_partition_mapper=RollupMapper(
            upstream_mapper=FixedKeyMapper("all"), window=SegmentWindow(["us", "eu", "apac"])
        ),
    ),
    "two_regions": PartitionedAssetTimetable(
        assets=d,
        default_partition_mapper=RollupMapper(
            upstream_mapper=FixedKeyMapper("all"),
            window=SegmentWindow(["us", "eu", "apac"]),
            wait_policy=MinimumCount(-1),
        ),
    ),
    "too_many_regions": PartitionedAssetTimetable(
        assets=d,
        default_partition_mapper=RollupMapper(
            upstream_mapper=FixedKeyMapper("all"), window=SegmentWindow(["us"]), wait_policy=MinimumCount(2)
        ),
    ),
    "allowed": PartitionedAssetTimetable(assets=d, default_partition_mapper=AllowedKeyMapper(["us", "eu"])),
    "quarter": PartitionedAssetTimetable(
        assets=c,
        default_partition_mapper=RollupMapper(
            upstream_mapper=StartOfQuarterMapper(input_format="%Y-%m"), window=QuarterWindow()
        ),
    ),
    "rollup_and_region": PartitionedAssetTimetable(
        assets=c | d, partition_mapper_config={c: StartOfMonthMapper(), d: FixedKeyMapper("2026-02")}
    ),
    "product": PartitionedAssetTimetable(
        assets=b, default_partition_mapper=ProductMapper(IdentityMapper(), StartOfDayMapper())
    ),
}
for name, schedule in SCHEDULES.items():
    with DAG(name, schedule=schedule, catchup=False):
        EmptyOperator(task_id="t")
"""

FEBRUARY, MARCH = "2026-02-03T00:00:00+00:00", "2026-03-01T00:00:00+00:00"

STEPS: list[tuple[str, str | None, str | None]] = [
    ("a", None, None),
    ("a", "2026-02-03T04:05:06", FEBRUARY),
    ("a", "2026-02-03T05:00:00", None),
    ("b", "2026-02-03T06:00:00", FEBRUARY),
    ("b", "2026-02-03", FEBRUARY),
    ("b", "2026-02-03T04:05:06", MARCH),
    ("a", "2026-02-03T23:30:00", FEBRUARY),
    ("a", "x", FEBRUARY),
    ("b", "x", MARCH),
    ("b", "y", None),
    ("a", "y", MARCH),
    ("b", "eu|2026-02-03T04:05:06", None),
    ("b", "eu|2026|02", None),
    ("c", "2026-02-03T00:00:00", None),
    ("c", "2026-02", None),
    ("c", "2026-01", None),
    ("c", "2026-03", None),
    ("c", "2026-01", None),
    ("d", "us", None),
    ("d", "us", None),
    ("d", "mars", None),
    ("d", "eu", FEBRUARY),
    ("d", "apac", None),
    ("d", "us", None),
]
