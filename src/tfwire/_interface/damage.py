"""What may be wrong with files, for the command and the viewer.

``verify_inputs`` verifies them, whatever their names; ``lost_records`` says of a report how many
records are lost where, a list of ``LostRecords``, ``total_lost`` how many in all,
``records_in_index`` how many there were once. ``damage_hint`` says what a file looks like of which
no record is read, ``detected_compression`` whether offsets are those of the file. ``compare_files``
finds out how the records of two sets of files differ: a ``Comparison`` of one ``RecordSet`` and
another.
"""

from __future__ import annotations

from tfwire._records.index.lost_records import (
    LostRecords as LostRecords,
    lost_records as lost_records,
    records_in_index as records_in_index,
    total_lost as total_lost,
)
from tfwire._records.reading.compare_files import (
    Comparison as Comparison,
    RecordSet as RecordSet,
    compare_files as compare_files,
)
from tfwire._records.reading.verify_files import (
    damage_hint as damage_hint,
    detected_compression as detected_compression,
    verify_inputs as verify_inputs,
)
