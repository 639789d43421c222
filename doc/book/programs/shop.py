"""A shop with thirty orders.  One customer is slow to pay, and one thing has no price."""
import time

PRICES = {"apple": 3, "pear": 4, "melon": 7}


class Order:
    def __init__(self, customer, items):
        self.customer = customer
        self.items = items

    def total(self):
        total = 0
        for item in self.items:
            total += price(item)
        return total


def price(item):
    return PRICES[item]


def pay(order):
    if order.customer == "carol":
        time.sleep(0.02 if len(order.items) == 3 else 0.01)
    return order.total()


def serve(orders):
    for i in range(orders):
        customer = ("alice", "bob", "carol")[i % 3]
        items = ["apple", "pear", "melon"][:i % 3 + 1]
        if i % 10 == 9:
            items.append("umbrella")
        try:
            pay(Order(customer, items))
        except KeyError:
            pass


def main():
    serve(30)


main()
