# ways: more
# needs: erlang-base
$CHECK erl -noshell -eval 'P = self(), [spawn(fun() -> P ! {N, lists:sum([X * N || X <- lists:seq(1, 20000)])} end) || N <- [3, 5, 7]], io:format("~p~n", [lists:sort([receive R -> R end || _ <- [1, 2, 3]])]), T = ets:new(t, [set]), [ets:insert(T, {I rem 97, integer_to_list(I)}) || I <- lists:seq(1, 5000)], io:format("~p ~p~n", [ets:info(T, size), byte_size(zlib:compress(term_to_binary(lists:seq(1, 5000))))]), halt().'
