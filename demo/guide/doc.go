// Package guide has the programs of GUIDE.md, each an example that the tests run.
package guide
