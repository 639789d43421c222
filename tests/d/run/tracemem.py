def the_name_of_this_function_is_taken_for_bytes_that_are_traced():
    pass


the_name_of_this_function_is_taken_for_bytes_that_are_traced()
