"""The order mix in psycopg 3: an open loop with seeded Poisson arrivals, one thread to a connection.

Its first argument is a JSON object: conninfo, rate, connections, seconds, customers, products, and
how ids go: base, ids_of_a_client, most_lines, and how many orders were premade for each client and
number of lines.
Each second it prints "completed failed" of that second; whoever starts it measures its processor
time. Threads rather than asyncio: psycopg's waiting is then a poll in C, not two changes of an event
loop's readers for each statement.
"""

import json
import queue
import random
import sys
import threading
import time

import psycopg

BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ"
PRODUCT = 'SELECT product_id, name, price_cents, stock FROM "shop".products WHERE product_id = %s'
HISTORY = (
    'SELECT order_id, status, total_cents, created_at FROM "shop".orders '
    "WHERE customer_id = %s ORDER BY created_at DESC LIMIT 10"
)
ITEMS_OF_ORDERS = (
    "SELECT order_id, line_no, product_id, quantity, price_cents "
    'FROM "shop".order_items WHERE order_id = ANY(%s::bigint[])'
)
PRICE_AND_STOCK = (
    'SELECT product_id, price_cents, stock FROM "shop".products WHERE product_id = ANY(%s::bigint[])'
)
INSERT_ORDER = (
    'INSERT INTO "shop".orders (order_id, customer_id, status, total_cents, created_at) '
    "VALUES (%s, %s, 'placed', %s, now())"
)
INSERT_ITEMS = (
    'INSERT INTO "shop".order_items (order_id, line_no, product_id, quantity, price_cents) '
    "SELECT %s, line_no, product_id, quantity, price_cents "
    "FROM unnest(%s::int[], %s::bigint[], %s::bigint[], %s::bigint[]) "
    "AS line (line_no, product_id, quantity, price_cents)"
)
CHANGE_STOCK = (
    'UPDATE "shop".products '
    "SET stock = stock + (%s::bigint[])[array_position(%s::bigint[], product_id)] "
    "WHERE product_id = ANY(%s::bigint[])"
)
INSERT_LEDGER = (
    'INSERT INTO "shop".ledger '
    "(entry_id, order_id, product_id, quantity, amount_cents, kind) "
    "SELECT entry_id, %s, product_id, quantity, amount_cents, %s "
    "FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[]) "
    "AS entry (entry_id, product_id, quantity, amount_cents)"
)
INSERT_RECEIPT = (
    'INSERT INTO "shop".receipts (business_id, kind, order_id, at) VALUES (%s, %s, %s, now())'
)
ORDER = 'SELECT status FROM "shop".orders WHERE order_id = %s'
ITEMS_OF_ORDER = (
    "SELECT line_no, product_id, quantity, price_cents "
    'FROM "shop".order_items WHERE order_id = %s ORDER BY product_id'
)
CANCEL_ORDER = (
    "UPDATE \"shop\".orders SET status = 'cancelled' WHERE order_id = %s AND status = 'placed'"
)
# Serialization failures and deadlocks.
CONFLICTS = ("40001", "40P01")
MOST_TRIES = 8
RECEIPT = 'SELECT FROM "shop".receipts WHERE business_id = %s'


class Worker:
    """One connection and its transactions."""

    def __init__(self, given, number):
        self.given = given
        self.random = random.Random(number)
        # Autocommit: the transactions' own BEGIN and COMMIT are the only ones.
        self.connection = psycopg.connect(
            given["conninfo"], autocommit=True, prepare_threshold=0
        )
        self.cursor = self.connection.cursor()
        lines = given["most_lines"]
        first = [
            given["base"] + (number * lines + line) * given["ids_of_a_client"]
            for line in range(1, lines + 1)
        ]
        self.open_orders = [
            id + n for n in range(1, given["premade"] + 1) for id in first
        ]
        self.next_order = first[0] + given["premade"]
        self.completed = 0
        self.failed = 0

    def run(self, arrivals):
        while arrivals.get() is not None:
            if not self.succeeds(self.draw()):
                self.failed += 1
            self.completed += 1

    def succeeds(self, transaction):
        """Runs a transaction, after a conflict again with the same inputs."""
        for _ in range(MOST_TRIES):
            try:
                transaction()
                return True
            except psycopg.errors.OperationalError as error:
                if error.sqlstate not in CONFLICTS:
                    raise
                self.cursor.execute("ROLLBACK")
        return False

    def draw(self):
        """The next transaction, with its inputs."""
        share = self.random.randrange(100)
        if share < 40:
            product = self.random.randint(1, self.given["products"])
            return lambda: self.lookup(product)
        if share < 70:
            customer = self.random.randint(1, self.given["customers"])
            return lambda: self.history(customer)
        if share < 90:
            count = self.random.randint(1, 4)
            products = sorted(self.random.sample(range(1, self.given["products"] + 1), count))
            quantities = [self.random.randint(1, 3) for _ in products]
            customer = self.random.randint(1, self.given["customers"])
            self.next_order += 1
            order = self.next_order
            return lambda: self.create(order, customer, products, quantities)
        if not self.open_orders:
            return self.nothing_to_cancel
        order = self.open_orders.pop(0)
        return lambda: self.cancel(order)

    def lookup(self, product):
        execute = self.cursor.execute
        execute(BEGIN)
        execute(PRODUCT, (product,)).fetchall()
        execute("COMMIT")

    def history(self, customer):
        execute = self.cursor.execute
        execute(BEGIN)
        orders = [row[0] for row in execute(HISTORY, (customer,)).fetchall()]
        execute(ITEMS_OF_ORDERS, (orders,)).fetchall()
        execute("COMMIT")

    def create(self, order, customer, products, quantities):
        execute = self.cursor.execute
        execute(BEGIN)
        found = execute(PRICE_AND_STOCK, (products,)).fetchall()
        prices = {product: price for product, price, _ in found}
        prices = [prices[product] for product in products]
        amounts = [price * quantity for price, quantity in zip(prices, quantities)]
        numbers = list(range(1, len(products) + 1))
        sold = [-quantity for quantity in quantities]
        execute(INSERT_ORDER, (order, customer, sum(amounts)))
        execute(INSERT_ITEMS, (order, numbers, products, quantities, prices))
        execute(CHANGE_STOCK, (sold, products, products))
        entries = [order * 16 + number for number in numbers]
        execute(INSERT_LEDGER, (order, "sale", entries, products, sold, amounts))
        execute(INSERT_RECEIPT, (str(order), "create", order))
        execute("COMMIT")
        self.open_orders.append(order)

    def nothing_to_cancel(self):
        execute = self.cursor.execute
        execute(BEGIN)
        execute(ORDER, (self.given["base"] - 1,)).fetchall()
        execute("ROLLBACK")
        execute(RECEIPT, ("none",))

    def cancel(self, order):
        execute = self.cursor.execute
        execute(BEGIN)
        execute(ORDER, (order,)).fetchall()
        items = execute(ITEMS_OF_ORDER, (order,)).fetchall()
        products = [item[1] for item in items]
        returned = [item[2] for item in items]
        amounts = [-item[2] * item[3] for item in items]
        entries = [order * 16 + 8 + item[0] for item in items]
        execute(CANCEL_ORDER, (order,))
        execute(CHANGE_STOCK, (returned, products, products))
        execute(INSERT_LEDGER, (order, "reversal", entries, products, returned, amounts))
        execute(INSERT_RECEIPT, (str(-order), "cancel", order))
        execute("COMMIT")


def arrive(given, arrivals):
    """Puts arrivals in line at their times; the schedule does not wait for anyone."""
    gaps = random.Random(given["base"])
    began = time.monotonic()
    due = began
    while due - began < given["seconds"]:
        due += gaps.expovariate(given["rate"])
        wait = due - time.monotonic()
        if wait > 0:
            time.sleep(wait)
        arrivals.put(due)


def main():
    given = json.loads(sys.argv[1])
    workers = [Worker(given, number) for number in range(given["connections"])]
    arrivals = queue.SimpleQueue()
    for worker in workers:
        threading.Thread(target=worker.run, args=(arrivals,), daemon=True).start()
    arriving = threading.Thread(target=arrive, args=(given, arrivals), daemon=True)
    arriving.start()
    completed = failed = 0
    due = time.monotonic()
    while arriving.is_alive():
        due += 1.0
        time.sleep(max(0.0, due - time.monotonic()))
        now = sum(worker.completed for worker in workers)
        lost = sum(worker.failed for worker in workers)
        print(now - completed, lost - failed, flush=True)
        completed, failed = now, lost
    for _ in workers:
        arrivals.put(None)


main()
