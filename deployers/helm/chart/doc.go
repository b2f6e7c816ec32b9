// SPDX-License-Identifier: Apache-2.0

// Package chart fetches the archives of Helm charts and unpacks them in memory.
//
// A [Source] first resolves the chart of a deploy item to a digest, which costs at most one small request, and then
// fetches the archive with this digest. The deployer compares the digest with that of the last deployment, so that an
// unchanged chart is not fetched again. Type [Sources] selects the Source by the fields of the item's configuration.
//
// [Unpack] returns the files of an archive. It limits their size and number, and rejects links and paths outside the
// chart. The package does not interpret the files.
package chart
