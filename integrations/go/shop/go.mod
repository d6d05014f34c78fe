module shop

go 1.21

require heapwright v0.0.0

replace heapwright => ../
