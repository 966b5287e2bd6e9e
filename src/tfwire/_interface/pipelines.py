"""What a dataset is made of, for packages with datasets of their own.

A ``Stage`` describes a sequence of elements, for any number of passes. A ``Cursor`` is one pass
through it: ``take`` pulls elements, and ``snapshot`` is the position that a saved state holds.

Datasets of a neighbour derive from ``tfwire.Dataset``: ``_stage`` is the last stage of one, and
``_next(stage, name)`` the dataset of one more; ``_show`` makes what user functions see of a leaf,
``_hide`` what is stored of a leaf that they return, and ``_calling(function)`` applies both.
Iterators derive from ``tfwire.DatasetIterator``: ``_translated`` and ``_given_up`` choose errors.

* Making stages. Most are a generator function of the elements of others: ``Replayed``. What changes
  or chooses elements one by one is a ``Map`` or a ``Filter``. Others derive from ``Derived``, and
  open a cursor that is ``Through`` the one below (``_below``), with elements in
  ``GatheringPieces``.
* For generator functions: ``stage_elements`` runs through another stage, ``Intact`` gives what
  comes before an error, ``group_by_window`` gathers by keys, ``draws`` makes random numbers that
  depend on a key (``as_key``) and a place alone, and ``generator`` a Generator of numpy of a key.
* Knowing stages again: ``Records``, ``Parse``, ``Unbatch``, ``Zip``.
* Passes for users: ``iterate``; ``Epochs`` numbers them; ``threaded`` parses in threads, of which
  ``num_cpus`` make sense. ``Workers`` compute in threads what comes in order.
* Batches in blocks of a neighbour's: a stage ``packing_batches`` gives ``PackedRows`` where it can,
  and so does what a ``PackingParser`` parses from files.
* The structure of elements: tuples and dicts, which ``map_structure``, ``zip_structures`` and
  ``leaves`` walk. ``stack_elements`` and ``stack_ragged`` make batches; ``count_rows``,
  ``cut_rows`` and ``join_rows`` take them apart and together.
* What is known before elements are made: for every leaf a text such as "int64[28, ?]", which
  ``description`` reads as a ``Description``. ``row_text`` is that of a row of a leaf,
  ``joined_specs`` the structure of elements that are as one of several says.
* Types of values: ``to_dtype`` of any name of one.
* The records of files: ``paths_of`` an argument; those of whole files ``in_memory``, of
  ``size_in_memory`` bytes; ``chosen_numbers`` of them in a slice or sequence, which a
  ``NumberedParser`` parses without an object for each; ``check_rule`` of how
  they are divided among shards.
"""

from tfwire._base.system import num_cpus as num_cpus
from tfwire._base.workers import Workers as Workers
from tfwire._data.batching import (
    Parse as Parse,
    packing_batches as packing_batches,
    threaded as threaded,
)
from tfwire._data.combining import Unbatch as Unbatch, Zip as Zip
from tfwire._data.dataset import paths_of as paths_of
from tfwire._data.grouped import Intact as Intact, group_by_window as group_by_window
from tfwire._data.indexed_records import check_rule as check_rule
from tfwire._data.iterator import Epochs as Epochs, iterate as iterate
from tfwire._data.packed_records import in_memory as in_memory, size_in_memory as size_in_memory
from tfwire._data.permutations import (
    as_key as as_key,
    draws as draws,
    generator as generator,
)
from tfwire._data.prefetch import Replayed as Replayed, stage_elements as stage_elements
from tfwire._data.record_sources import Records as Records
from tfwire._data.stages import (
    Cursor as Cursor,
    Derived as Derived,
    Filter as Filter,
    GatheringPieces as GatheringPieces,
    Map as Map,
    Stage as Stage,
    Through as Through,
)
from tfwire._data.structure import (
    Description as Description,
    count_rows as count_rows,
    cut_rows as cut_rows,
    description as description,
    join_rows as join_rows,
    joined_specs as joined_specs,
    leaves as leaves,
    map_structure as map_structure,
    row_text as row_text,
    stack_elements as stack_elements,
    stack_ragged as stack_ragged,
    zip_structures as zip_structures,
)
from tfwire._parsing.features import to_dtype as to_dtype
from tfwire._parsing.fetched_batches import NumberedParser as NumberedParser
from tfwire._parsing.packed_rows import PackedRows as PackedRows, PackingParser as PackingParser
from tfwire._records.index.random_access import chosen_numbers as chosen_numbers
