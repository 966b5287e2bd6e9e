"""The pages of the viewer, by the fields of their addresses."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from tfwire import RecordPosition
from tfwire._interface.messages import plural, show_path
from tfwire.view._addresses import (
    Fields,
    feature_field,
    integer_field,
    kept_fields,
    link_to,
    place_fields,
    turn,
)
from tfwire.view._budget import Budget
from tfwire.view._damage import Check, damage_list
from tfwire.view._dataset import COUNTING_SECONDS, DataSet, TablePage, TablePlace, fault_text
from tfwire.view._grid import has_pictures, record_grid
from tfwire.view._html import Html, element, facts, join, shown_text, small
from tfwire.view._page import (
    Frame,
    Order,
    as_field,
    document,
    feature_summary,
    has_field,
    key_help,
    options,
    record_head,
    record_table,
    record_view,
)
from tfwire.view._pictures import Look, Picture, find_picture, picture_of_payload
from tfwire.view._records import BrowsedFile, FeatureName, Record
from tfwire.view._search import Search
from tfwire.view._summary import FeatureSummary

_PAGE_RECORDS = 50
_SAMPLE_RECORDS = 1000
_MOST_OPTIONS = 500
_MOST_FILES = 1000  # in the list
_MOST_PLACES = 10_000
_MOST_SEARCHES = 4
_ENDED = "ended by newer searches; load the page again"
_SEARCH_SECONDS = 0.5  # that a page waits for records, before it says how far the search is
# Fields of a page of records that links keep: which page it is, and how it is shown.
_PLACE_OF_PAGE = ("file", "start", "at")
_SEARCH = ("feature", "value", "found")
_LOOK = ("sort", "fall", "as")
_OF_ONCE = ("stop", "go")  # of a search; links to the same page do not have them


class Site:
    """Pages about files.

    Args:
        files: What to show.
        corners: As Look has them.

    Attributes:
        dataset: The files as one table.
        check: For damage.
    """

    def __init__(self, files: Sequence[BrowsedFile], corners: tuple[str, ...] = ()) -> None:
        self.dataset = DataSet(files)
        self.check = Check(self.dataset)
        self.corners = corners
        self._names: list[FeatureName] = []  # that were seen
        # Where the page before another one begins.
        self._before: dict[TablePlace, TablePlace] = {}
        self._searches: dict[tuple[FeatureName | None, str], Search] = {}
        self._lock = threading.Lock()  # of the searches

    def close(self) -> None:
        """Ends the check, and all searches."""
        self.check.stop()
        with self._lock:
            searches = list(self._searches.values())
        for search in searches:
            search.stop()

    # ---- Pages ----------------------------------------------------------------------------------

    def page(self, fields: Fields, budget: Budget | None = None) -> str:
        """The page that the fields of an address ask for.

        Args:
            fields: Names to values.
            budget: What the page may cost; None: the usual.

        Raises:
            LookupError: There is no such file or record.
        """
        self._file(fields)
        view = fields.get("view", "records")
        budget = budget or Budget()
        if view == "record":
            page = self._record_page(fields, budget)
        elif view == "features":
            page = self._feature_page(fields, budget)
        elif view == "damage":
            page = self._damage_page(fields)
        elif self._is_search(fields):
            page = self._search_page(fields, budget)
        else:
            page = self._records_page(fields, budget)
        self.check.start()  # after the first page
        return page

    def status(self, fields: Fields) -> dict[str, Any]:
        """What a page that is shown has to say later: texts by their names, whether there will be
        others, and how many rows the page would have."""
        told: dict[str, Any] = {"facts": self._facts(), "check": self.check.note()}
        # One that newer ones have ended is not begun again: pages would end each other's for ever.
        search = self._searches.get(_key_of(fields))
        told |= {"rows": 0, "search": _ENDED, "running": self.check.is_running, "searching": True}
        if search is not None:
            begin = integer_field(fields, "found")
            told["rows"] = len(search.found(begin, _PAGE_RECORDS))
            told |= {"search": search.note(), "searching": search.is_running}
            told["running"] |= search.is_running
        return told

    def _records_page(self, fields: Fields, budget: Budget) -> Html:
        start = self._start(fields, budget)
        page = self.dataset.page(start, _PAGE_RECORDS, budget)
        self._note_names(page.records)
        body = Html()
        if page.records:
            body, count = self._table(page.records, fields, budget)
            page = page.first(count)
        note = facts("" if page.records else "there are no records")
        turns = self._turns(start, page, fields)
        tools = self._tools(start.file, fields, budget)
        return self._document("records", join(note, body, _below(turns)), turns, tools)

    def _table(self, records: list[Record], fields: Fields, budget: Budget) -> tuple[Html, int]:
        """The table of some records. Those that come first have room, whatever the order."""
        order = Order(fields.get("sort", ""), "fall" in fields)
        look, frame = self._look(fields, budget), self._frame(order, fields)
        if fields.get("as") == "grid":
            body, count = record_grid(records, look)
        else:
            body, count = record_table(order.of(records), look, frame)
        if count < len(records) and order != Order():
            body, count = record_table(order.of(records[:count]), look, frame)
        return join(self._toggle(records, fields), body), count

    def _toggle(self, records: Sequence[Record], fields: Fields) -> Html:
        """A link from rows to a grid of pictures, if there are some, or back."""
        is_grid = fields.get("as") == "grid"
        if not (is_grid or has_pictures(records)):
            return Html()
        kept = {name: value for name, value in fields.items() if name not in _OF_ONCE}
        to = link_to({**kept, "as": "rows" if is_grid else "grid"})
        link = element("a", "as rows" if is_grid else "as a grid of pictures", href=to)
        return element("p", link, class_="facts toggle")

    def _note_names(self, records: Sequence[Record]) -> None:
        """Keeps the names of features, for the list of the search."""
        names = {name for record in records[:20] for name in record.names[:_MOST_OPTIONS]}
        self._names = sorted({*filter(has_field, names), *self._names})[:_MOST_OPTIONS]

    def _start(self, fields: Fields, budget: Budget) -> TablePlace:
        """Where a page begins: at a place, at a record's number in its file, or in all."""
        file, number = integer_field(fields, "file"), integer_field(fields, "start")
        if "at" in fields:
            return TablePlace(file, RecordPosition(number, integer_field(fields, "at")))
        if "file" in fields:
            return self.dataset.find_in_file(file, number, budget) if number else TablePlace(file)
        return self.dataset.find(number, budget) if number else TablePlace()

    def _turns(self, start: TablePlace, page: TablePage, fields: Fields) -> Html:
        """Links to the pages before and after."""
        kept, links = kept_fields(fields, *_LOOK), []
        if start != TablePlace():
            # Pages differ in their number of records: the one before is known once it was shown.
            before = self._before.get(start)
            if before is None:
                budget = Budget(seconds=COUNTING_SECONDS)
                known = self.dataset.before(start, _PAGE_RECORDS, budget)
                before = known or TablePlace(max(0, start.file - 1))
            links.append(turn("previous", "prev", kept, **place_fields(before)))
        if page.next:
            if len(self._before) >= _MOST_PLACES:
                self._before.clear()
            self._before[page.next] = start
            links.append(turn("next", "next", kept, **place_fields(page.next)))
        return Html(" ".join(links))

    def _record_page(self, fields: Fields, budget: Budget) -> Html:
        file, n = integer_field(fields, "file"), integer_field(fields, "n")
        place = self.dataset.find_in_file(file, n, budget)
        page = self.dataset.page(place, 1, budget)
        if not page.records or (page.records[0].file, page.records[0].number) != (file, n):
            raise LookupError(f"there is no record {n:,}")
        (record,) = page.records
        kept = kept_fields(fields, *_SEARCH, *_LOOK)
        back: dict[str, Any] = {"start": n, "file": file}
        if "from" in fields and not self._is_search(fields):
            known = zip(_PLACE_OF_PAGE, fields["from"].split("."), strict=False)
            back = {name: value for name, value in known if value}
            kept["from"] = fields["from"]
        links = [turn("back", "up", {**kept_fields(fields, *_SEARCH, *_LOOK)}, **back)]
        kept["view"] = "record"
        if self._is_search(fields):
            before, after = self._search(fields).beside(file, n)
            words = "previous found", "next found"
        else:
            before = self.dataset.before(place, 1, budget)
            after = self.dataset.without_empty(page.next)
            words = "previous", "next"
        for word, relation, to in zip(words, ("prev", "next"), (before, after), strict=True):
            if to is not None:
                at = {"file": to.file, "n": to.position.record_index}
                links.append(turn(word, relation, kept, **at))
        if record.is_read:
            payload = f"payload?{urlencode({'file': file, 'n': n})}"
            links.append(element("a", "payload", href=payload))
        head = record_head(record, self.dataset.name_of(file))
        body = join(head, record_view(record, self._look(fields, budget)))
        keys = key_help({"n": "", "p": "records", "Escape": "back"})
        return self._document("record", body, Html(" ".join(links)), keys)

    def _feature_page(self, fields: Fields, budget: Budget) -> Html:
        summary, passed = FeatureSummary(), 0
        for record in self.dataset.first(integer_field(fields, "file"), _SAMPLE_RECORDS, budget):
            summary.add(record)
            passed += 1
        count = self.dataset.num_records
        is_whole = count is not None and passed >= count
        which = "all" if is_whole else "the first"
        note = facts(f"of {which} {plural(summary.num_records, 'record')}")
        body = join(note, feature_summary(summary, budget.html))
        return self._document("features", body)

    def _damage_page(self, fields: Fields) -> Html:
        if "check" in fields:
            self.check.start(asked=True)

        def link(record: Record) -> str:
            return link_to(file=record.file, start=record.number)

        body = [damage_list(self.dataset, self.check, link)]
        if not self.check.is_running and len(self.check.done) < len(self.dataset.files):
            again = element("a", "check the files", href=link_to(view="damage", check=1))
            body.append(element("p", again))
        return self._document("damage", join(body))

    # ---- Searches -------------------------------------------------------------------------------

    def _is_search(self, fields: Fields) -> bool:
        return bool(fields.get("feature") or fields.get("value"))

    def _search(self, fields: Fields) -> Search:
        """The search that fields ask for, which is begun if it is not known. Few are kept."""
        key = _key_of(fields)
        with self._lock:
            search = self._searches.pop(key, None)
            if search is None:
                search = Search(self.dataset, *key)
                search.start()
            self._searches[key] = search
            oldest = list(self._searches)[: max(0, len(self._searches) - _MOST_SEARCHES)]
            ended = [self._searches.pop(each) for each in oldest]
        for each in ended:  # not with the lock: its threads may be waiting for a file
            each.stop()
        if "stop" in fields:
            search.stop()
        elif "go" in fields:
            search.start()
        return search

    def _search_page(self, fields: Fields, budget: Budget) -> Html:
        search, begin = self._search(fields), integer_field(fields, "found")
        search.wait(begin + _PAGE_RECORDS, _SEARCH_SECONDS)
        is_running = search.is_running
        places = search.found(begin, _PAGE_RECORDS)
        records = self._found_records(places, budget)
        self._note_names(records)
        body, count = Html(), 0
        if records:
            body, count = self._table(records, fields, budget)
        kept = kept_fields(fields, "feature", "value", *_LOOK)
        links = []
        if begin:
            links.append(turn("previous", "prev", kept, found=max(0, begin - _PAGE_RECORDS)))
        if begin + count < search.num_found:
            links.append(turn("next", "next", kept, found=begin + count))
        turns = Html(" ".join(links))
        state = _status("search", search.note(), rows=len(places) if is_running else None)
        if is_running:
            state = join(state, " ", element("a", "stop", href=link_to(fields, stop=1)))
        elif not (search.is_done or search.is_full):
            again = {name: value for name, value in fields.items() if name != "stop"}
            state = join(state, " ", element("a", "search on", href=link_to(again, go=1)))
        note = element("p", state, class_="facts")
        tools = self._tools(0, fields, budget)
        body = join(note, body, _below(turns))
        return self._document("records", body, turns, tools, is_growing=is_running)

    def _found_records(self, places: list[TablePlace], budget: Budget) -> list[Record]:
        found: list[Record] = []
        for number in dict.fromkeys(place.file for place in places):
            positions = [place.position for place in places if place.file == number]
            found += self.dataset.files[number].at(positions, budget)
        return self.dataset.numbered(found)

    # ---- Around the pages -----------------------------------------------------------------------

    def problem_page(self, error: Exception) -> Html:
        """The page for an address that has none, with the reason."""
        text = str(error.args[0] if isinstance(error, LookupError) and error.args else error)
        if isinstance(error, OSError):
            name = f"{show_path(error.filename)}: " if isinstance(error.filename, str) else ""
            text = f"{name}the file cannot be read: {fault_text(error)}"
        home = element("p", element("a", "back to the records", rel="up", href="./"))
        return self._document("", join(element("p", shown_text(text), class_="bad"), home))

    def _document(
        self,
        view: str,
        body: Html,
        turns: object = "",
        tools: object = "",
        *,
        is_growing: bool = False,
    ) -> Html:
        tabs = []
        for name in ("records", "features", "damage"):
            current = "page" if name == view else None
            tabs.append(element("a", name, href=link_to(view=name), aria_current=current))
        running = self.check.is_running or not self.check.is_started
        check = _status("check", self.check.note(), rows=0 if running else None)
        known = element("span", _status("facts", self._facts()), "; ", check, class_="facts")
        name = self.dataset.name
        header = join(element("h1", shown_text(name)), known, element("nav", tabs, turns, tools))
        return document(name, header, body, is_growing=is_growing)

    def _facts(self) -> str:
        """What is known of the files."""
        return ", ".join(filter(None, [self.dataset.facts(), self.check.compressions]))

    def _tools(self, number: int, fields: Fields, budget: Budget) -> Html:
        """The search, and what leads to a record or a file."""
        names = options(self._names, feature_field(fields), budget.html)
        choice = element("select", element("option", "any", value=""), names, name="feature")
        value = {"name": "value", "value": fields.get("value", ""), "placeholder": "value"}
        shown_as = Html()
        if "as" in fields:
            shown_as = element("input", type="hidden", name="as", value=fields["as"])
        find = [
            *(shown_as, element("label", small("feature"), " ", choice), " "),
            element("input", type="search", **value, aria_label="value"),
            element("button", "find"),
        ]
        start = {"name": "start", "inputmode": "numeric", "pattern": "[0-9]*"}
        label = {"placeholder": "record", "aria_label": "record", "size": 8}
        go = [shown_as, element("input", **start, **label), element("button", "go")]
        keys = {"j": "", "k": "rows", "Enter": "open", "n": "", "p": "pages", "/": "find"}
        forms = element("form", find), element("form", go), self._file_list(number)
        return join(*forms, key_help(keys))

    def _file_list(self, number: int) -> Html:
        """A list to choose from, which needs no script, and links to the neighbors."""
        files = self.dataset.files
        if len(files) == 1:
            return Html()
        first = max(0, min(number - _MOST_FILES // 2, len(files) - _MOST_FILES))
        choices = [
            element("option", shown_text(files[i].name, 80), value=i, selected=i == number)
            for i in range(first, min(first + _MOST_FILES, len(files)))
        ]
        links = [
            element("a", f"{word} file", href=link_to(file=i))
            for i, word in ((number - 1, "previous"), (number + 1, "next"))
            if 0 <= i < len(files)
        ]
        choice = element("select", choices, name="file", class_="files", aria_label="file")
        place = small(f"{number + 1:,} of {plural(len(files), 'file')}")
        return join(element("form", choice, element("button", "open")), links, place)

    def _frame(self, order: Order, fields: Fields) -> Frame:
        kept = {k: v for k, v in fields.items() if k not in ("sort", "fall", *_OF_ONCE)}

        def sort(field: str, name: str) -> Html:
            is_this = order.field == field
            falls = is_this and not order.is_falling
            mark = ("\u2193" if order.is_falling else "\u2191") if is_this else "\u2195"
            said = join("sort this page by ", name, ", falling" if falls else ", rising")
            to = link_to(kept, sort=field, **({"fall": 1} if falls else {}))
            return join(" ", element("a", mark, class_="sort", href=to, aria_label=said))

        return Frame(self.dataset.shown_labels, sort)

    def _look(self, fields: Fields, budget: Budget) -> Look:
        """Links to records know the page and the search to go back to."""
        kept = kept_fields(fields, *_SEARCH, *_LOOK)
        if "from" in fields:
            kept["from"] = fields["from"]
        elif not self._is_search(fields):
            # A page that begins with a record by its number has no offset, or no file.
            missing = "" if integer_field(fields, "start") else "0"
            kept["from"] = ".".join(fields.get(name, missing) for name in _PLACE_OF_PAGE)

        def link(record: Record) -> str:
            return link_to({"view": "record", "file": record.file, "n": record.number, **kept})

        def source(picture: Picture) -> dict[str, str]:
            at: dict[str, Any] = {"file": picture.in_file, "n": picture.number}
            if picture.name is not None:
                if not has_field(picture.name):
                    return {}
                at |= {"feature": as_field(picture.name)}
                at |= {"step": picture.step, "value": picture.item}
            return {"src": f"picture?{urlencode(at)}"}

        return Look(source, link, budget, self.corners)

    # ---- What records hold ----------------------------------------------------------------------

    def picture(self, fields: Fields) -> tuple[str, bytes]:
        """The type and the bytes of the picture that the fields of an address ask for.

        Raises:
            LookupError: There is none.
        """
        budget = Budget()
        record = self._file(fields).record(integer_field(fields, "n"), budget)
        if record is None:
            raise LookupError("there is no such record")
        name, picture = feature_field(fields), picture_of_payload(record)
        if name is not None:
            step, index = integer_field(fields, "step"), integer_field(fields, "value")
            picture = find_picture(record, name, step, index)
        if picture is None or not picture.media.is_shown(budget.pixels):
            raise LookupError("this value is not a picture")
        return picture.media.type, picture.file(budget.effort)

    def payload(self, fields: Fields) -> tuple[str, bytes]:
        """The number and the bytes of the record that the fields of an address ask for.

        Raises:
            LookupError: It is not there, damaged or too long.
        """
        number = integer_field(fields, "n")
        found = self._file(fields).payload(number)
        if found is None:
            raise LookupError("there is no such record")
        return str(number), found

    def _file(self, fields: Fields) -> BrowsedFile:
        number, files = integer_field(fields, "file"), self.dataset.files
        if number >= len(files):
            raise LookupError(f"there is no file {number}")
        return files[number]


def _key_of(fields: Fields) -> tuple[FeatureName | None, str]:
    return feature_field(fields), fields.get("value", "")


def _status(name: str, text: str, rows: int | None = None) -> Html:
    """A text that the script keeps up to date.

    Args:
        name: As Site.status has it.
        text: The text now.
        rows: How many rows the page has now, if there will be another text.
    """
    return element("span", shown_text(text), data_status=name, data_rows_now=rows)


def _below(turns: Html) -> Html:
    return element("nav", turns, class_="below", aria_label="pages") if turns else Html()
