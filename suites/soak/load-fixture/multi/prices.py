from taxes import rate


def total(net, country):
    """What is to be paid, in cents, rounded half up."""
    return int(net * (1 + rate(country)))
