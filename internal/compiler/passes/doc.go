// Package passes makes graphs smaller and plainer before they are compiled:
// composites that no backend claims are replaced by their bodies, what holds
// by algebra is applied, what is known is computed, what is there twice is
// shared, and what nothing needs is dropped.
//
// A graph that went through [Run] computes what it did before: floats keep
// their values to the last bit as far as the meanings of the ops go, with NaN,
// infinities and the sign of zero. What is lost is what only derivatives look
// at (stop_gradient), so a graph is differentiated first.
package passes
