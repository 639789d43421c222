def long_name_of_one():
    pass


def long_name_of_another():
    pass


long_name_of_one()
long_name_of_one()
long_name_of_another()
