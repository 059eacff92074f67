"""The sample data set, made of data/sample/intents.yaml: `bash run.sh sample`.

Every question expresses a *concept*: an intent plus its slot values. Two questions mean the same
exactly when they share the concept, so labels need no judgement, and the data cannot contradict
itself. Each concept belongs to one split, which keeps the splits' questions apart. A negative
differs from the first question in one way only: another slot value, a negation, another intent.
"""
