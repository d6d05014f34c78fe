# ways: more
# needs: graphviz
{ echo 'digraph g { node [shape=record]; subgraph cluster_a { a -> b [label="x<y"]; }'; for i in $(seq 120); do echo "n$i -> n$((i * 31 % 120)) [weight=$((i % 5))];"; done; echo '}'; } >g.dot
$CHECK dot -Tplain g.dot | cksum; $CHECK neato -Tdot g.dot | wc -l; $CHECK dot -Tsvg g.dot | cksum; $CHECK gvpr -c 'N { label = name; }' g.dot | cksum
