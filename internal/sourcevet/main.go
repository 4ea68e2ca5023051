// Command sourcevet reports what go vet does, for another system: it type-checks all packages
// from source, where go vet compiles what they import. Environment variables choose the system:
//
//	GOOS=windows CGO_ENABLED=0 sourcevet ./...
package main

import (
	"golang.org/x/tools/go/analysis/multichecker"
	"golang.org/x/tools/go/analysis/suite/vet"
)

func main() { multichecker.Main(vet.Suite...) }
