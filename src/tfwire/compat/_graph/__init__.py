"""TensorFlow 1's graphs, sessions and input queues, made of datasets.

A call with a deferred tensor returns a deferred tensor: a function and its inputs. ``Session.run``
evaluates its fetches, each node once. No thread runs ahead: a queue is a dataset that a session
draws from.
"""
