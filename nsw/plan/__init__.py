"""Plan: recipe x site -> runs -> jobs, with a cost estimate. Pure: what the site has is handed in."""
