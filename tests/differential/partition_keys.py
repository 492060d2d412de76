"""Partition mappers and keys for them: what the recording and the test share."""

UNITS = ("Hour", "Day", "Week", "Month", "Quarter", "Year")

KEYS = (
    "2024-03-13T10:42:15", "2024-12-30T23:59:59", "2024-01-01T00:00:00", "2025-03-30T02:30:00", "2025-10-26T02:30:00",
    "2024-02-29T12:00:00", "2024-02-30T00:00:00", "us", "us|2024-03-13T10:42:15", "a|b|c", "",
)  # fmt: skip
"""Among them times that clocks in Berlin skip and repeat, a day that does not exist, and what is no time at all."""

MAPPERS = (
    *(f"StartOf{unit}Mapper()" for unit in UNITS),
    *(f"StartOf{unit}Mapper(timezone='Europe/Berlin')" for unit in UNITS),
    "IdentityMapper()",
    "FixedKeyMapper('all')",
    "AllowedKeyMapper(['us', 'eu'])",
    "ProductMapper(IdentityMapper(), StartOfDayMapper())",
    "ChainMapper(StartOfDayMapper(), StartOfMonthMapper(input_format='%Y-%m-%d'))",
    "ChainMapper(StartOfWeekMapper(output_format='%Y-%m-%d'), "
    "FanOutMapper(upstream_mapper=StartOfWeekMapper(input_format='%Y-%m-%d'), window=WeekWindow()))",
    "StartOfDayMapper(output_format='%d.%m.%Y')",
    "StartOfWeekMapper(output_format='week %V of %Y, %m/%d')",
    "StartOfQuarterMapper(output_format='Q{quarter} %Y')",
    *(
        f"FanOutMapper(upstream_mapper=StartOf{unit}Mapper(), window={unit}Window(direction='{direction}'))"
        for unit in UNITS[1:]
        for direction in ("forward", "backward")
    ),
    "FanOutMapper(upstream_mapper=StartOfDayMapper(timezone='Europe/Berlin'), window=DayWindow())",
    "FanOutMapper(upstream_mapper=IdentityMapper(), window=SegmentWindow(['us', 'eu']), "
    "downstream_mapper=IdentityMapper())",
)

ROLLUPS = tuple(
    f"RollupMapper(upstream_mapper=StartOf{unit}Mapper(timezone='{zone}'), "
    f"window={unit}Window(direction='{direction}'))"
    for unit in UNITS[1:]
    for direction in ("forward", "backward")
    for zone in ("UTC", "Europe/Berlin")
)
ROLLED_UP = ("2024-03-13T10:42:15", "2025-03-30T02:30:00", "2024-10-27T12:00:00")
