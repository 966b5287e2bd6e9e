"""What the neighbours use of tfwire beside its public names.

A neighbour is a package of tfwire that could be a distribution of its own: ``compat``, ``torch``
and the like. It imports what is public, and these modules.
"""
