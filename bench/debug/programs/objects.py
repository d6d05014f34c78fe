"""Objects, dictionaries, strings, JSON and sorting: objects.py SCALE

Run with PYTHONMALLOC=malloc: each object is a block of malloc's then.
"""

import json
import sys

SCALE = int(sys.argv[1])


class Account:
    def __init__(self, number, owner):
        self.number = number
        self.owner = owner
        self.entries = []

    def book(self, day, amount, text):
        self.entries.append(Entry(day, amount, text))

    def balance(self):
        return sum(entry.amount for entry in self.entries)


class Entry:
    __slots__ = ("day", "amount", "text")

    def __init__(self, day, amount, text):
        self.day, self.amount, self.text = day, amount, text


def accounts():
    all_of_them = [Account(i, "owner-%d" % (i * 7919 % 10007)) for i in range(120 * SCALE)]
    for i in range(3000 * SCALE):
        account = all_of_them[i * 31 % len(all_of_them)]
        account.book(i % 365, i * 37 % 1009 - 500, "text %d of %s" % (i, account.owner))
    return all_of_them


def as_json(all_of_them):
    records = [
        {
            "number": account.number,
            "owner": account.owner,
            "entries": [{"day": e.day, "amount": e.amount, "text": e.text} for e in account.entries],
        }
        for account in all_of_them
    ]
    for _ in range(2):
        records = json.loads(json.dumps(records))
    return records


def words(records):
    count = {}
    for record in records:
        for entry in record["entries"]:
            for word in entry["text"].split():
                count[word] = count.get(word, 0) + 1
    return sorted(count.items(), key=lambda item: (-item[1], item[0]))


def tree(depth):
    return (tree(depth - 1), tree(depth - 1)) if depth else None


def nodes(one):
    return 1 + nodes(one[0]) + nodes(one[1]) if one else 1


everything = accounts()
everything.sort(key=lambda account: (account.balance(), account.number))
records = as_json(everything)
ranked = words(records)
text = ",".join(word.upper() for word, _ in ranked).replace("OWNER-", "o")
print(len(everything), everything[0].number, everything[-1].number)
print(len(ranked), ranked[:3], len(text), hash(text) % 1000003)
print(sum(nodes(tree(12)) for _ in range(SCALE // 2 + 1)))
