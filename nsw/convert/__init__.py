"""Job scripts made into a recipe and a site, by `nsw init --from-script`."""
