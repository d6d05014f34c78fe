module heapwright

go 1.21
