// Package tcp implements the engine "tcp" of groups: processes on one machine or several, connected
// pairwise by TCP. It is for tests, for the CPU, and for small clusters. Rank i adds up part i of
// an all-reduce, so a rank sends as many bytes as in a ring, in two messages to each other rank.
// Sums are in the order of ranks and in wide types, so that all ranks have the same bits, as in
// [collective.Local].
//
// Connections are neither encrypted nor authenticated: the token of a run only separates runs. Use
// it in a network that you trust.
//
// Start reading at [Join], then engine.go and world.go.
package tcp
