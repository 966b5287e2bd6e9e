"""What the neighbours use of tfwire beside its public names: the one inner interface.

A neighbour is a package of tfwire that could be a distribution of its own: ``compat``, ``cli``,
``view``, ``torch`` and the like. It imports what is public, and these modules, whose texts say what
each name is for; ``tests/house/test_architecture.py`` counts what else it takes. Nothing else of
tfwire imports this package.
"""
