#!/usr/bin/env python3
"""Writes cron.txt: when Debian's cron runs an expression. Usage: python3 cron.py > cron.txt

A second reading of Debian's cron (3.0pl1: entry.c reads the fields, cron.c follows the clock), written without a look at src/calendar and at the
library that it uses. The clock is followed minute by minute, as cron's main loop does. L, W and # are not in cron; they are computed here from
the month's days. Only the standard library is used, and the system's time zone database.
"""

from calendar import monthrange
from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
DAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]
# First value, last value, and the names of the values.
LIMITS = [(0, 59, []), (0, 23, []), (1, 31, []), (1, 12, MONTHS), (0, 7, DAYS)]
HOUR, DAY_OF_MONTH, DAY_OF_WEEK = 1, 2, 4


def number(text, low, names):
    """get_number() of entry.c."""
    if text.upper() in names:
        return names.index(text.upper()) + low
    if not text.isdigit():
        raise ValueError(text)
    return int(text)


def values(part, field):
    """get_range() of entry.c; a step without a range and a range that ends before it begins are refused."""
    low, high, names = LIMITS[field]
    bounds, slash, step = part.partition("/")
    if bounds == "*":
        first, last = low, high
    else:
        first, dash, last = bounds.partition("-")
        first = number(first, low, names)
        last = number(last, low, names) if dash else first
        if slash and not dash:
            raise ValueError(part)
    step = number(step, 0, []) if slash else 1
    if step == 0 or not low <= first <= last <= high:
        raise ValueError(part)
    return set(range(first, last + 1, step))


def day_rule(part, field):
    """A function of (date, days of its month) for a part with L, W or #; None for another part."""
    text = part.upper()
    # Monday is 0 in Python, and 1 in cron.
    of_week = lambda name: number(name, 0, DAYS) % 7
    weekday = lambda date: (date.weekday() + 1) % 7
    if field == DAY_OF_MONTH:
        if text == "L":
            return lambda date, length: date.day == length
        if text == "LW":
            def is_last_working_day(date, length):
                last = date.replace(day=length)
                while last.weekday() > 4:
                    last -= timedelta(days=1)
                return date.date() == last.date()
            return is_last_working_day
        if text.endswith("W"):
            wanted = int(text[:-1])
            if not 1 <= wanted <= 31:
                raise ValueError(part)

            def is_nearest_working_day(date, length):
                if wanted > length:
                    return False
                in_month = [date.replace(day=day) for day in range(1, length + 1)]
                working = [day for day in in_month if day.weekday() < 5]
                # Of two as near, there is none: a Saturday has its Friday, and a Sunday its Monday.
                return date.date() == min(working, key=lambda day: abs(day.day - wanted)).date()
            return is_nearest_working_day
    if field == DAY_OF_WEEK and "#" in text:
        name, count = text.split("#")
        name, count = of_week(name), int(count)
        if not 1 <= count <= 5:
            raise ValueError(part)
        return lambda date, length: weekday(date) == name and (date.day - 1) // 7 + 1 == count
    if field == DAY_OF_WEEK and text.endswith("L") and text != "L":
        name = of_week(text[:-1])
        return lambda date, length: weekday(date) == name and date.day + 7 > length
    return None


class Expression:
    def __init__(self, text):
        fields = text.split()
        if len(fields) != 5:
            raise ValueError(text)
        self.values = [set() for _ in fields]
        self.rules = {DAY_OF_MONTH: [], DAY_OF_WEEK: []}
        for field, given in enumerate(fields):
            for part in given.split(","):
                rule = day_rule(part, field)
                if rule:
                    self.rules[field].append(rule)
                else:
                    self.values[field] |= values(part, field)
        # MIN_STAR, HR_STAR, DOM_STAR and DOW_STAR of entry.c look at the field's first character.
        star = [given.startswith("*") for given in fields]
        self.is_wild = star[0] or star[HOUR]
        self.needs_both_days = star[DAY_OF_MONTH] or star[DAY_OF_WEEK]

    def is_on(self, date):
        """find_jobs() of cron.c, without the time of day."""
        length = monthrange(date.year, date.month)[1]
        has = lambda field, values: any(rule(date, length) for rule in self.rules[field]) or values & self.values[field]
        of_month = bool(has(DAY_OF_MONTH, {date.day}))
        weekday = (date.weekday() + 1) % 7
        of_week = bool(has(DAY_OF_WEEK, {weekday, 7} if weekday == 0 else {weekday}))
        is_day = of_month and of_week if self.needs_both_days else of_month or of_week
        return is_day and date.month in self.values[3]

    def matches(self, time):
        return time.minute in self.values[0] and time.hour in self.values[1] and self.is_on(time)


MINUTE = timedelta(minutes=1)


def ticks(zone, begin, end):
    """The main loop of cron.c: (real time, time of the wall clock to look at, wild jobs?, fixed jobs?), for each find_jobs()."""
    wall = lambda at: at.astimezone(zone).replace(tzinfo=None)
    virtual = wall(begin)
    at = begin
    while at < end:
        at += MINUTE
        running = wall(at)
        behind = (running - virtual) // MINUTE
        if behind == 1:
            virtual = running
            yield at, running, True, True
        elif behind > 180 or behind <= -180:
            virtual = running
            yield at, running, True, True
        elif behind > 5:
            yield at, running, True, False
            while virtual < running:
                virtual += MINUTE
                yield at, virtual, False, True
        elif behind > 0:
            while virtual < running:
                virtual += MINUTE
                yield at, virtual, True, True
        else:
            yield at, running, True, False


def change_after(zone, at):
    """The next change of the zone's clocks."""
    offset = lambda at: at.astimezone(zone).utcoffset()
    while offset(at) == offset(at + timedelta(hours=1)):
        at += timedelta(hours=1)
    while offset(at) == offset(at + MINUTE):
        at += MINUTE
    return at + MINUTE


def short(times):
    """1 3 5 7 20 is written as 1+2*4 20."""
    words = []
    while times:
        count = 1
        while len(times) > 2 and count + 1 < len(times) and times[count + 1] - times[count] == times[1] - times[0]:
            count += 1
        if count < 3:
            words.append(str(times[0]))
            times = times[1:]
        else:
            words.append(f"{times[0]}+{times[1] - times[0]}*{count + 1}")
            times = times[count + 1:]
    return " ".join(words)


def expressions_around(ended, resumed):
    """The shapes of minutes and hours, at the hour that is left out or occurs twice."""
    first = min(ended, resumed)
    hour, before, after = first.hour, (first.hour + 23) % 24, (first.hour + 1) % 24
    span = f"{before}-{after}" if before < after else f"{before},{hour},{after}"
    weekday = DAYS[(first.weekday() + 1) % 7]
    minutes = ["30", "15,45", "10-12", "0-45/15", "*", "*/20", "5,*/30"]
    hours = [f"{hour}", f"{hour},{(hour + 12) % 24}", span, "0-23/2", "*", "*/2", f"{after},*/3"]
    yield from (f"{minute} {hour} * * *" for minute in minutes)
    yield from (f"0 {hours} * * *" for hours in hours)
    yield from (f"{minute} {span} * * *" for minute in ["20,40", "*/30"])
    yield f"30 {hour} * * {weekday}"
    yield f"45 {hour} {first.day} {MONTHS[first.month - 1].lower()} *"
    yield "59 23 * * *"


# Before the two changes that are looked at.
CHANGES = [
    ("Europe/Berlin", 2026, 10), ("America/New_York", 2024, 1), ("Australia/Lord_Howe", 2024, 1), ("Antarctica/Troll", 2024, 1),
    ("America/Santiago", 2024, 1), ("Africa/Casablanca", 2024, 1), ("Pacific/Apia", 2011, 12), ("Europe/Dublin", 2024, 1),
    ("America/Nuuk", 2024, 1), ("America/Havana", 2024, 1), ("Africa/Cairo", 2024, 1), ("Pacific/Chatham", 2024, 1),
    ("Antarctica/Casey", 2009, 10),
]
AROUND = timedelta(hours=30)

YEAR = 2028
OF_MONTH = ["*", "15", "1,15", "1-7", "*/2", "1-31/10", "*/100,1-7", "1-7,*/100", "L", "LW", "15W", "1W,L"]
OF_WEEK = ["*", "1", "MON", "7", "1,5", "mon-fri", "*/2", "*/7", "1-5/2", "5L", "MON#2", "FRI#5,0L"]
OF_YEAR = ["2", "2,7", "JUN-AUG", "*/5", "1-12/4", "feb,*/6"]

SHAPES = ["5", "1,5", "1-5", "1-5/2", "*", "*/2", "5/2", "0", "8", "13", "24", "32", "60", "5-1", "*/0", "1,,2", "*,5", "1,*", "L",
          "LW", "5W", "5L", "5#2", "FEB", "MON", "MON-WED",
          "FEB-APR", "1MON", "MONDAY", "*-5", "-5", "1-5W", "5#6"]


def main():
    print("# Written by cron.py, which says how. Minutes from a change of a zone's clocks; 1+2*3 is 1 3 5.")
    for name, year, month in CHANGES:
        zone = ZoneInfo(name)
        at = datetime(year, month, 1, tzinfo=timezone.utc)
        for _ in range(2):
            at = change_after(zone, at)
            ended = (at - MINUTE).astimezone(zone).replace(tzinfo=None) + MINUTE
            resumed = at.astimezone(zone).replace(tzinfo=None)
            print(f"\nchange {name} {at:%Y-%m-%dT%H:%M:%SZ}: {ended:%a %H:%M} is {resumed:%a %H:%M}")
            looks = list(ticks(zone, at - AROUND - MINUTE, at + AROUND))
            for text in expressions_around(ended, resumed):
                expression = Expression(text)
                runs = [(real, wild == expression.is_wild or wild == fixed) for real, wall, wild, fixed in looks
                        if expression.matches(wall)]
                times = sorted({(real - at) // MINUTE for real, runs_then in runs if runs_then})
                print(f"{text} = {short(times)}")

    print(f"\ndays {YEAR}: each month's days, the 1st in the lowest bit")
    crossed = [(day, "*", week) for day in OF_MONTH for week in OF_WEEK] + [("31", month, "*") for month in OF_YEAR]
    for day, month, week in crossed:
        text = f"0 0 {day} {month} {week}"
        expression = Expression(text)
        bits = [sum(1 << day - 1 for day in range(1, monthrange(YEAR, month)[1] + 1) if expression.is_on(datetime(YEAR, month, day)))
                for month in range(1, 13)]
        print(f"{text} = {' '.join(f'{month:x}' for month in bits)}")

    print("\nshapes: whether each field takes it")
    for shape in SHAPES:
        for field in range(5):
            fields = ["*"] * 5
            fields[field] = shape
            text = " ".join(fields)
            try:
                Expression(text)
                print(f"{text} = taken")
            except ValueError:
                print(f"{text} = refused")


main()
