// Package tcp is the engine "tcp" of groups: processes on one machine or on several, each pair of
// them connected by TCP. It is for tests, for the CPU, and for small clusters; rank i adds up part i
// of an all-reduce, so a rank sends what a ring would send, in two messages to each other rank.
// Sums are in the order of ranks and in wide types, so that all ranks have the same bits, as in
// [collective.Local].
//
// Connections are neither encrypted nor proof against someone who reads the network: the token of a
// run only keeps runs apart. Use it in a network that you trust.
//
// Start reading at [Join], then engine.go and world.go.
package tcp
