console.log("There is nothing to run here yet.");
