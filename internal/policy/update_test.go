package policy

import "flag"

var update = flag.Bool("update", false, "write the expected parts of testdata instead of comparing them")
