package main

import _ "github.com/rlx-go/rlx/internal/ballast"
