"""TensorFlow 1's graphs, sessions and input queues, imitated over datasets.

A call on a deferred tensor gives another one: a function and its inputs. ``Session.run`` evaluates
what it is asked for, each node once. No thread runs ahead; queues are datasets that a session draws
from.
"""
